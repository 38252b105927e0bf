"""What others have published of their trainings, as tables: incidents with what was done about them, and recipes."""
