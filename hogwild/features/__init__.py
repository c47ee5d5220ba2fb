"""From raw input to hashed columns: text, tables, JSON lines, and the formats of other programs."""
