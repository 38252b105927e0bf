"""What an agent may ask of the runs below one folder, and the skill that teaches how to ask (`forensics mcp`, `forensics skill`)."""
