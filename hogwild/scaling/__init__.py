"""The scaling study: the same training with several strategies and numbers of workers.

`plan` says what runs, `study` runs it, `summary` makes numbers of it, and `findings` and `report`
words; `terminal`, `page` and `record` show it.
"""
