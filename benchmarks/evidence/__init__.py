"""What is shown without a model: passages for questions, and for citing sentences."""
