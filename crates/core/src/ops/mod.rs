//! What users call: broadcasting, promotion, composites.
