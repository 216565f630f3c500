//! The methods of arrays that are functions, too.
