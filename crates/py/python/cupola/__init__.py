"""Arrays, automatic differentiation and neural networks."""
