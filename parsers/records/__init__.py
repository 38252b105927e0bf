"""Rows to tables, whatever file they lay in: what a column or key means, which step a row belongs to, Arrow out."""
