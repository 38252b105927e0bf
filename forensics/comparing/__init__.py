"""Two runs side by side: where they part, which settings differ, what was learnt for what; a known good run beside another."""
