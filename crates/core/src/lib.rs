//! Cupola's language: lazy arrays, primitives, transforms, graphs and the planner. No kernels.
