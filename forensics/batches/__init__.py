"""Which samples were in which batch: read from a manifest (recorded), or worked out from loader, seed and config (rebuilt).

One file for each family of loaders, of pure functions; nothing here imports torch.
"""
