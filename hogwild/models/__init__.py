"""What training came to: models that predict, evaluate and recommend."""
