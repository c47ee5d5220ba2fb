"""The scaling study: the same training with several strategies and numbers of workers.

`plan` decides what runs, and `study` runs it. `summary` computes numbers, `findings` and `report`
put them into words, and `terminal`, `page` and `record` show the result.
"""
