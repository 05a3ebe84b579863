"""What is shown without a model: passages for questions."""
