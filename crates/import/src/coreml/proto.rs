//! The messages of a Core ML model, as far as they are read: fields of the format by their numbers.
//!
//! What is not here is skipped by the decoder. Entries of maps are kept as they are, so that a name that is
//! there twice is seen.

use prost::{Message, Oneof};

/// A whole model.
#[derive(Clone, PartialEq, Message)]
pub struct Model {
    #[prost(int32, tag = "1")]
    pub specification_version: i32,
    #[prost(message, optional, tag = "2")]
    pub description: Option<ModelDescription>,
    #[prost(message, optional, tag = "502")]
    pub program: Option<Program>,
    // Kinds of models that are not read, to name them.
    #[prost(message, optional, tag = "500")]
    pub neural_network: Option<Skipped>,
    #[prost(message, optional, tag = "303")]
    pub neural_network_regressor: Option<Skipped>,
    #[prost(message, optional, tag = "403")]
    pub neural_network_classifier: Option<Skipped>,
    #[prost(message, optional, tag = "200")]
    pub pipeline_classifier: Option<Skipped>,
    #[prost(message, optional, tag = "201")]
    pub pipeline_regressor: Option<Skipped>,
    #[prost(message, optional, tag = "202")]
    pub pipeline: Option<Skipped>,
}

/// A message of which nothing is read.
#[derive(Clone, PartialEq, Message)]
pub struct Skipped {}

/// What goes in and out.
#[derive(Clone, PartialEq, Message)]
pub struct ModelDescription {
    #[prost(message, repeated, tag = "1")]
    pub input: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "10")]
    pub output: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "13")]
    pub state: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "20")]
    pub functions: Vec<FunctionDescription>,
    #[prost(string, tag = "21")]
    pub default_function_name: String,
}

/// What goes in and out of one of several functions.
#[derive(Clone, PartialEq, Message)]
pub struct FunctionDescription {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub input: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "3")]
    pub output: Vec<FeatureDescription>,
}

/// An input or output.
#[derive(Clone, PartialEq, Message)]
pub struct FeatureDescription {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "3")]
    pub r#type: Option<FeatureType>,
}

/// The type of an input or output.
#[derive(Clone, PartialEq, Message)]
pub struct FeatureType {
    #[prost(oneof = "FeatureKind", tags = "1, 2, 3, 4, 5, 6, 7, 8")]
    pub kind: Option<FeatureKind>,
    #[prost(bool, tag = "1000")]
    pub is_optional: bool,
}

/// What kind of type it is.
#[derive(Clone, PartialEq, Oneof)]
pub enum FeatureKind {
    #[prost(message, tag = "1")]
    Int64(Skipped),
    #[prost(message, tag = "2")]
    Double(Skipped),
    #[prost(message, tag = "3")]
    Text(Skipped),
    #[prost(message, tag = "4")]
    Image(Skipped),
    #[prost(message, tag = "5")]
    Array(ArrayFeature),
    #[prost(message, tag = "6")]
    Dictionary(Skipped),
    #[prost(message, tag = "7")]
    Sequence(Skipped),
    #[prost(message, tag = "8")]
    State(Skipped),
}

/// The sizes of an array, which may be several or open.
#[derive(Clone, PartialEq, Message)]
pub struct ArrayFeature {
    #[prost(int64, repeated, tag = "1")]
    pub shape: Vec<i64>,
    #[prost(oneof = "Flexibility", tags = "21, 31")]
    pub flexibility: Option<Flexibility>,
    #[prost(oneof = "DefaultValue", tags = "41, 51, 61")]
    pub default: Option<DefaultValue>,
}

/// What an input is full of that is not given.
#[derive(Clone, PartialEq, Oneof)]
pub enum DefaultValue {
    #[prost(int32, tag = "41")]
    Int(i32),
    #[prost(float, tag = "51")]
    Float(f32),
    #[prost(double, tag = "61")]
    Double(f64),
}

/// What else the sizes may be.
#[derive(Clone, PartialEq, Oneof)]
pub enum Flexibility {
    #[prost(message, tag = "21")]
    Enumerated(EnumeratedShapes),
    #[prost(message, tag = "31")]
    Ranges(ShapeRange),
}

/// All shapes that an array may have.
#[derive(Clone, PartialEq, Message)]
pub struct EnumeratedShapes {
    #[prost(message, repeated, tag = "1")]
    pub shapes: Vec<ArrayShape>,
}

/// One of several shapes.
#[derive(Clone, PartialEq, Message)]
pub struct ArrayShape {
    #[prost(int64, repeated, tag = "1")]
    pub shape: Vec<i64>,
}

/// For each axis the least and the largest size.
#[derive(Clone, PartialEq, Message)]
pub struct ShapeRange {
    #[prost(message, repeated, tag = "1")]
    pub size_ranges: Vec<SizeRange>,
}

/// The least and the largest size; below 0 there is no largest.
#[derive(Clone, PartialEq, Message)]
pub struct SizeRange {
    #[prost(uint64, tag = "1")]
    pub lower_bound: u64,
    #[prost(int64, tag = "2")]
    pub upper_bound: i64,
}

/// An ML program.
#[derive(Clone, PartialEq, Message)]
pub struct Program {
    #[prost(int64, tag = "1")]
    pub version: i64,
    #[prost(message, repeated, tag = "2")]
    pub functions: Vec<FunctionEntry>,
}

/// A function by its name.
#[derive(Clone, PartialEq, Message)]
pub struct FunctionEntry {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<Function>,
}

/// A function: its inputs, and a block for each set of operators.
#[derive(Clone, PartialEq, Message)]
pub struct Function {
    #[prost(message, repeated, tag = "1")]
    pub inputs: Vec<NamedValueType>,
    #[prost(string, tag = "2")]
    pub opset: String,
    #[prost(message, repeated, tag = "3")]
    pub block_specializations: Vec<BlockEntry>,
}

/// A block by the set of operators that it is written in.
#[derive(Clone, PartialEq, Message)]
pub struct BlockEntry {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<Block>,
}

/// Operations in order.
#[derive(Clone, PartialEq, Message)]
pub struct Block {
    #[prost(message, repeated, tag = "1")]
    pub inputs: Vec<NamedValueType>,
    #[prost(string, repeated, tag = "2")]
    pub outputs: Vec<String>,
    #[prost(message, repeated, tag = "3")]
    pub operations: Vec<Operation>,
}

/// One operation.
#[derive(Clone, PartialEq, Message)]
pub struct Operation {
    #[prost(string, tag = "1")]
    pub r#type: String,
    #[prost(message, repeated, tag = "2")]
    pub inputs: Vec<ArgumentEntry>,
    #[prost(message, repeated, tag = "3")]
    pub outputs: Vec<NamedValueType>,
    #[prost(message, repeated, tag = "4")]
    pub blocks: Vec<Block>,
    #[prost(message, repeated, tag = "5")]
    pub attributes: Vec<ValueEntry>,
}

/// An argument by the name of its parameter.
#[derive(Clone, PartialEq, Message)]
pub struct ArgumentEntry {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<Argument>,
}

/// What an argument is bound to: one value, or a list.
#[derive(Clone, PartialEq, Message)]
pub struct Argument {
    #[prost(message, repeated, tag = "1")]
    pub arguments: Vec<Binding>,
}

/// A value, or the name of one.
#[derive(Clone, PartialEq, Message)]
pub struct Binding {
    #[prost(oneof = "Bound", tags = "1, 2")]
    pub binding: Option<Bound>,
}

/// What a binding is.
#[derive(Clone, PartialEq, Oneof)]
pub enum Bound {
    #[prost(string, tag = "1")]
    Name(String),
    #[prost(message, tag = "2")]
    Value(Value),
}

/// A value by the name of its attribute.
#[derive(Clone, PartialEq, Message)]
pub struct ValueEntry {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<Value>,
}

/// A name with its type.
#[derive(Clone, PartialEq, Message)]
pub struct NamedValueType {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<ValueType>,
}

/// A type.
#[derive(Clone, PartialEq, Message)]
pub struct ValueType {
    #[prost(oneof = "TypeKind", tags = "1, 2, 3, 4, 5")]
    pub kind: Option<TypeKind>,
}

/// What kind of type it is.
#[derive(Clone, PartialEq, Oneof)]
pub enum TypeKind {
    #[prost(message, tag = "1")]
    Tensor(TensorType),
    #[prost(message, tag = "2")]
    List(Box<ListType>),
    #[prost(message, tag = "3")]
    Tuple(Skipped),
    #[prost(message, tag = "4")]
    Dictionary(Skipped),
    #[prost(message, tag = "5")]
    State(Box<StateType>),
}

/// A tensor's element type and sizes.
#[derive(Clone, PartialEq, Message)]
pub struct TensorType {
    #[prost(int32, tag = "1")]
    pub data_type: i32,
    #[prost(int64, tag = "2")]
    pub rank: i64,
    #[prost(message, repeated, tag = "3")]
    pub dimensions: Vec<Dimension>,
}

/// The type of a list's elements.
#[derive(Clone, PartialEq, Message)]
pub struct ListType {
    #[prost(message, optional, boxed, tag = "1")]
    pub r#type: Option<Box<ValueType>>,
}

/// The type of what a state holds.
#[derive(Clone, PartialEq, Message)]
pub struct StateType {
    #[prost(message, optional, boxed, tag = "1")]
    pub wrapped_type: Option<Box<ValueType>>,
}

/// One size.
#[derive(Clone, PartialEq, Message)]
pub struct Dimension {
    #[prost(oneof = "DimensionKind", tags = "1, 2")]
    pub kind: Option<DimensionKind>,
}

/// A number, or one that is open.
#[derive(Clone, PartialEq, Oneof)]
pub enum DimensionKind {
    #[prost(message, tag = "1")]
    Constant(ConstantDimension),
    #[prost(message, tag = "2")]
    Unknown(UnknownDimension),
}

/// A size that is known.
#[derive(Clone, PartialEq, Message)]
pub struct ConstantDimension {
    #[prost(uint64, tag = "1")]
    pub size: u64,
}

/// A size that is open.
#[derive(Clone, PartialEq, Message)]
pub struct UnknownDimension {
    #[prost(bool, tag = "1")]
    pub variadic: bool,
}

/// A value with its type: in the model, or in a file beside it.
#[derive(Clone, PartialEq, Message)]
pub struct Value {
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<ValueType>,
    #[prost(oneof = "ValueKind", tags = "3, 5")]
    pub kind: Option<ValueKind>,
}

/// Where a value is.
#[derive(Clone, PartialEq, Oneof)]
pub enum ValueKind {
    #[prost(message, tag = "3")]
    Immediate(ImmediateValue),
    #[prost(message, tag = "5")]
    BlobFile(BlobFileValue),
}

/// A value in the model.
#[derive(Clone, PartialEq, Message)]
pub struct ImmediateValue {
    #[prost(oneof = "Immediate", tags = "1, 2, 3, 4")]
    pub kind: Option<Immediate>,
}

/// What kind of value it is.
#[derive(Clone, PartialEq, Oneof)]
pub enum Immediate {
    #[prost(message, tag = "1")]
    Tensor(TensorValue),
    #[prost(message, tag = "2")]
    Tuple(Skipped),
    #[prost(message, tag = "3")]
    List(ListValue),
    #[prost(message, tag = "4")]
    Dictionary(Skipped),
}

/// A list of values.
#[derive(Clone, PartialEq, Message)]
pub struct ListValue {
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<Value>,
}

/// Where the elements of a tensor begin in a file.
#[derive(Clone, PartialEq, Message)]
pub struct BlobFileValue {
    #[prost(string, tag = "1")]
    pub file_name: String,
    #[prost(uint64, tag = "2")]
    pub offset: u64,
}

/// The elements of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorValue {
    #[prost(oneof = "Elements", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub elements: Option<Elements>,
}

/// The elements, in the field for their type.
#[derive(Clone, PartialEq, Oneof)]
pub enum Elements {
    #[prost(message, tag = "1")]
    Floats(Floats),
    #[prost(message, tag = "2")]
    Ints(Ints),
    #[prost(message, tag = "3")]
    Bools(Bools),
    #[prost(message, tag = "4")]
    Texts(Texts),
    #[prost(message, tag = "5")]
    LongInts(LongInts),
    #[prost(message, tag = "6")]
    Doubles(Doubles),
    #[prost(message, tag = "7")]
    Bytes(Bytes),
}

macro_rules! repeated {
    ($($name:ident: $kind:ident, $element:ty;)*) => {$(
        /// Elements of one type.
        #[derive(Clone, PartialEq, Message)]
        pub struct $name {
            #[prost($kind, repeated, tag = "1")]
            pub values: Vec<$element>,
        }
    )*};
}

repeated! {
    Floats: float, f32;
    Ints: int32, i32;
    Bools: bool, bool;
    Texts: string, String;
    LongInts: int64, i64;
    Doubles: double, f64;
}

/// Elements as they are in memory.
#[derive(Clone, PartialEq, Message)]
pub struct Bytes {
    #[prost(bytes = "vec", tag = "1")]
    pub values: Vec<u8>,
}
