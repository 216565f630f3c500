//! Written by scripts/ops_reference.py: every function on the inputs that MLX was given.

use cupola::ops::*;
use cupola::{Array, DType, Result, Scalar};

/// Calls `case` with each expression and its value.
pub fn each(case: &mut dyn FnMut(&str, &dyn Fn() -> Result<Array>)) -> Result<()> {
    let x = Array::from_slice::<f32>(
        &[-1.5, 2.0, -0.25, -2.5, 1.0, -1.25, 2.25, 0.0, -2.25, 1.25, -1.0, 2.5],
        [3, 4],
    )?;
    let y = Array::from_slice::<f32>(
        &[-0.25, 1.0, 2.25, -2.25, -1.0, 0.25, 1.5, 2.75, -1.75, -0.5, 0.75, 2.0],
        [3, 4],
    )?;
    let v = Array::from_slice::<f32>(&[1.0, 0.0, -1.0, -2.0], [4])?;
    let t3 = Array::from_slice::<f32>(
        &[
            -0.25, 1.0, 2.25, -2.25, -1.0, 0.25, 1.5, 2.75, -1.75, -0.5, 0.75, 2.0, -2.5, -1.25,
            0.0, 1.25, 2.5, -2.0, -0.75, 0.5, 1.75, -2.75, -1.5, -0.25,
        ],
        [2, 3, 4],
    )?;
    let m = Array::from_slice::<f32>(
        &[
            1.0, 0.0, -1.0, -2.0, 2.75, 1.75, 0.75, -0.25, -1.25, -2.25, 2.5, 1.5, 0.5, -0.5, -1.5,
            -2.5, 2.25, 1.25, 0.25, -0.75,
        ],
        [4, 5],
    )?;
    let b3 = Array::from_slice::<f32>(
        &[
            2.25, -1.0, 1.5, -1.75, 0.75, -2.5, 0.0, 2.5, -0.75, 1.75, -1.5, 1.0, -2.25, 0.25,
            2.75, -0.5, 2.0, -1.25, 1.25, -2.0, 0.5, -2.75, -0.25, 2.25, -1.0, 1.5, -1.75, 0.75,
            -2.5, 0.0, 2.5, -0.75, 1.75, -1.5, 1.0, -2.25, 0.25, 2.75, -0.5, 2.0,
        ],
        [2, 4, 5],
    )?;
    let xi = Array::from_slice::<i32>(&[-6, 8, -1, -10, 4, -5, 9, 0, -9, 5, -4, 10], [3, 4])?;
    let yi = Array::from_slice::<i32>(&[-1, 4, 9, -9, -4, 1, 6, 11, -7, -2, 3, 8], [3, 4])?;
    let u = Array::from_slice::<f32>(
        &[
            0.5,
            0.6666666865348816,
            0.0833333358168602,
            0.8333333134651184,
            0.3333333432674408,
            0.4166666567325592,
            0.75,
            0.0,
            0.75,
            0.4166666567325592,
            0.3333333432674408,
            0.8333333134651184,
        ],
        [3, 4],
    )?;
    let im = Array::from_slice::<f32>(
        &[
            1.0, 0.0, -1.0, -2.0, 2.75, 1.75, 0.75, -0.25, -1.25, -2.25, 2.5, 1.5, 0.5, -0.5, -1.5,
            -2.5, 2.25, 1.25, 0.25, -0.75, -1.75, -2.75, 2.0, 1.0, 0.0, -1.0, -2.0, 2.75, 1.75,
            0.75, -0.25, -1.25, -2.25, 2.5, 1.5, 0.5, -0.5, -1.5, -2.5, 2.25, 1.25, 0.25, -0.75,
            -1.75, -2.75, 2.0, 1.0, 0.0, -1.0, -2.0, 2.75, 1.75, 0.75, -0.25, -1.25, -2.25, 2.5,
            1.5, 0.5, -0.5, -1.5, -2.5, 2.25, 1.25, 0.25, -0.75, -1.75, -2.75, 2.0, 1.0, 0.0, -1.0,
            -2.0, 2.75, 1.75, 0.75, -0.25, -1.25, -2.25, 2.5, 1.5, 0.5, -0.5, -1.5, -2.5, 2.25,
            1.25, 0.25, -0.75, -1.75, -2.75, 2.0, 1.0, 0.0, -1.0, -2.0, 2.75, 1.75, 0.75, -0.25,
            -1.25, -2.25, 2.5, 1.5, 0.5, -0.5, -1.5, -2.5, 2.25, 1.25, 0.25, -0.75, -1.75, -2.75,
            2.0, 1.0, 0.0, -1.0, -2.0, 2.75, 1.75, 0.75, -0.25, -1.25, -2.25, 2.5, 1.5, 0.5, -0.5,
            -1.5, -2.5, 2.25, 1.25, 0.25, -0.75, -1.75, -2.75, 2.0, 1.0, 0.0, -1.0, -2.0, 2.75,
            1.75, 0.75, -0.25, -1.25, -2.25, 2.5, 1.5, 0.5, -0.5, -1.5, -2.5, 2.25, 1.25, 0.25,
            -0.75, -1.75, -2.75, 2.0, 1.0, 0.0, -1.0, -2.0, 2.75, 1.75, 0.75, -0.25, -1.25, -2.25,
            2.5, 1.5, 0.5, -0.5, -1.5, -2.5, 2.25, 1.25, 0.25, -0.75, -1.75, -2.75, 2.0, 1.0, 0.0,
            -1.0, -2.0, 2.75, 1.75, 0.75, -0.25, -1.25, -2.25, 2.5, 1.5, 0.5, -0.5, -1.5, -2.5,
            2.25, 1.25, 0.25, -0.75, -1.75, -2.75, 2.0, 1.0, 0.0, -1.0, -2.0, 2.75, 1.75, 0.75,
            -0.25, -1.25, -2.25, 2.5, 1.5, 0.5, -0.5, -1.5, -2.5, 2.25, 1.25, 0.25, -0.75, -1.75,
            -2.75, 2.0, 1.0, 0.0, -1.0, -2.0, 2.75, 1.75, 0.75, -0.25, -1.25, -2.25,
        ],
        [2, 6, 5, 4],
    )?;
    let w = Array::from_slice::<f32>(
        &[
            -2.25, -2.0, -1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0,
            1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, -2.75, -2.5, -2.25, -2.0, -1.75, -1.5, -1.25,
            -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5,
            2.75, -2.75, -2.5, -2.25, -2.0, -1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0,
            0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, -2.75, -2.5, -2.25, -2.0,
            -1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5,
            1.75, 2.0, 2.25, 2.5, 2.75, -2.75, -2.5, -2.25, -2.0, -1.75, -1.5, -1.25, -1.0, -0.75,
            -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, -2.75,
            -2.5, -2.25, -2.0, -1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75,
            1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, -2.75, -2.5, -2.25, -2.0, -1.75, -1.5,
            -1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25,
            2.5, 2.75, -2.75, -2.5, -2.25, -2.0, -1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0,
            0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, -2.75, -2.5, -2.25, -2.0,
            -1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5,
            1.75, 2.0, 2.25, 2.5, 2.75, -2.75, -2.5, -2.25, -2.0, -1.75, -1.5, -1.25, -1.0, -0.75,
            -0.5, -0.25,
        ],
        [6, 3, 3, 4],
    )?;
    let wg = Array::from_slice::<f32>(
        &[
            -2.25, -2.0, -1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0,
            1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, -2.75, -2.5, -2.25, -2.0, -1.75, -1.5, -1.25,
            -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5,
            2.75, -2.75, -2.5, -2.25, -2.0, -1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0,
            0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, -2.75, -2.5, -2.25, -2.0,
            -1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5,
            1.75, 2.0, 2.25, 2.5, 2.75, -2.75, -2.5, -2.25, -2.0, -1.75, -1.5, -1.25, -1.0, -0.75,
            -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5,
        ],
        [6, 3, 3, 2],
    )?;
    let i1 = Array::from_slice::<f32>(
        &[
            1.0, 0.0, -1.0, -2.0, 2.75, 1.75, 0.75, -0.25, -1.25, -2.25, 2.5, 1.5, 0.5, -0.5, -1.5,
            -2.5, 2.25, 1.25, 0.25, -0.75, -1.75, -2.75, 2.0, 1.0, 0.0, -1.0, -2.0, 2.75, 1.75,
            0.75, -0.25, -1.25, -2.25, 2.5, 1.5, 0.5, -0.5, -1.5, -2.5, 2.25, 1.25, 0.25, -0.75,
            -1.75, -2.75, 2.0, 1.0, 0.0, -1.0, -2.0, 2.75, 1.75, 0.75, -0.25, -1.25, -2.25,
        ],
        [2, 7, 4],
    )?;
    let w1 = Array::from_slice::<f32>(
        &[
            -2.25, -2.0, -1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0,
            1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, -2.75, -2.5, -2.25, -2.0, -1.75, -1.5, -1.25,
            -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5,
            2.75, -2.75, -2.5, -2.25, -2.0, -1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0,
            0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, -2.75, -2.5, -2.25, -2.0,
            -1.75,
        ],
        [6, 3, 4],
    )?;
    let i3 = Array::from_slice::<f32>(
        &[
            1.0, 0.0, -1.0, -2.0, 2.75, 1.75, 0.75, -0.25, -1.25, -2.25, 2.5, 1.5, 0.5, -0.5, -1.5,
            -2.5, 2.25, 1.25, 0.25, -0.75, -1.75, -2.75, 2.0, 1.0, 0.0, -1.0, -2.0, 2.75, 1.75,
            0.75, -0.25, -1.25, -2.25, 2.5, 1.5, 0.5, -0.5, -1.5, -2.5, 2.25, 1.25, 0.25, -0.75,
            -1.75, -2.75, 2.0, 1.0, 0.0, -1.0, -2.0, 2.75, 1.75, 0.75, -0.25, -1.25, -2.25, 2.5,
            1.5, 0.5, -0.5, -1.5, -2.5, 2.25, 1.25, 0.25, -0.75, -1.75, -2.75, 2.0, 1.0, 0.0, -1.0,
        ],
        [1, 3, 3, 4, 2],
    )?;
    let w3 = Array::from_slice::<f32>(
        &[
            -2.25, -2.0, -1.75, -1.5, -1.25, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0,
            1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, -2.75, -2.5, -2.25, -2.0, -1.75, -1.5, -1.25,
            -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5,
            2.75, -2.75, -2.5, -2.25, -2.0,
        ],
        [3, 2, 2, 2, 2],
    )?;
    let sp = Array::from_slice::<f32>(
        &[
            0.0,
            -0.0,
            1.0,
            -1.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            0.5,
            -2.5,
            1.5,
            2.5,
            9.99999993922529e-09,
        ],
        [12],
    )?;
    let idx = Array::from_slice::<i32>(&[2, -1, 0], [3])?;
    let ix2 = Array::from_slice::<i32>(&[1, 0], [2, 1])?;
    let iu = Array::from_slice::<u32>(&[3, 0], [2])?;
    let i = Scalar::Complex(0.0, 1.0);
    let z = add(&astype(&x, DType::C64)?, &multiply(&astype(&y, DType::C64)?, i)?)?;
    let key = random::key(7);
    let k = Some(&key);
    case(r#"abs(&x)"#, &|| abs(&x));
    case(r#"abs(&sp)"#, &|| abs(&sp));
    case(r#"negative(&x)"#, &|| negative(&x));
    case(r#"negative(&sp)"#, &|| negative(&sp));
    case(r#"sign(&x)"#, &|| sign(&x));
    case(r#"square(&x)"#, &|| square(&x));
    case(r#"square(&sp)"#, &|| square(&sp));
    case(r#"exp(&x)"#, &|| exp(&x));
    case(r#"exp(&sp)"#, &|| exp(&sp));
    case(r#"expm1(&x)"#, &|| expm1(&x));
    case(r#"expm1(&sp)"#, &|| expm1(&sp));
    case(r#"sin(&x)"#, &|| sin(&x));
    case(r#"sin(&sp)"#, &|| sin(&sp));
    case(r#"cos(&x)"#, &|| cos(&x));
    case(r#"cos(&sp)"#, &|| cos(&sp));
    case(r#"tan(&x)"#, &|| tan(&x));
    case(r#"tan(&sp)"#, &|| tan(&sp));
    case(r#"arctan(&x)"#, &|| arctan(&x));
    case(r#"arctan(&sp)"#, &|| arctan(&sp));
    case(r#"sinh(&x)"#, &|| sinh(&x));
    case(r#"sinh(&sp)"#, &|| sinh(&sp));
    case(r#"cosh(&x)"#, &|| cosh(&x));
    case(r#"cosh(&sp)"#, &|| cosh(&sp));
    case(r#"tanh(&x)"#, &|| tanh(&x));
    case(r#"tanh(&sp)"#, &|| tanh(&sp));
    case(r#"arcsinh(&x)"#, &|| arcsinh(&x));
    case(r#"arcsinh(&sp)"#, &|| arcsinh(&sp));
    case(r#"sigmoid(&x)"#, &|| sigmoid(&x));
    case(r#"sigmoid(&sp)"#, &|| sigmoid(&sp));
    case(r#"erf(&x)"#, &|| erf(&x));
    case(r#"erf(&sp)"#, &|| erf(&sp));
    case(r#"floor(&x)"#, &|| floor(&x));
    case(r#"floor(&sp)"#, &|| floor(&sp));
    case(r#"ceil(&x)"#, &|| ceil(&x));
    case(r#"ceil(&sp)"#, &|| ceil(&sp));
    case(r#"degrees(&x)"#, &|| degrees(&x));
    case(r#"degrees(&sp)"#, &|| degrees(&sp));
    case(r#"radians(&x)"#, &|| radians(&x));
    case(r#"radians(&sp)"#, &|| radians(&sp));
    case(r#"isnan(&x)"#, &|| isnan(&x));
    case(r#"isnan(&sp)"#, &|| isnan(&sp));
    case(r#"isinf(&x)"#, &|| isinf(&x));
    case(r#"isinf(&sp)"#, &|| isinf(&sp));
    case(r#"isfinite(&x)"#, &|| isfinite(&x));
    case(r#"isfinite(&sp)"#, &|| isfinite(&sp));
    case(r#"isposinf(&x)"#, &|| isposinf(&x));
    case(r#"isposinf(&sp)"#, &|| isposinf(&sp));
    case(r#"isneginf(&x)"#, &|| isneginf(&x));
    case(r#"isneginf(&sp)"#, &|| isneginf(&sp));
    case(r#"sqrt(&u)"#, &|| sqrt(&u));
    case(r#"rsqrt(&u)"#, &|| rsqrt(&u));
    case(r#"log(&u)"#, &|| log(&u));
    case(r#"log2(&u)"#, &|| log2(&u));
    case(r#"log10(&u)"#, &|| log10(&u));
    case(r#"log1p(&u)"#, &|| log1p(&u));
    case(r#"arcsin(&u)"#, &|| arcsin(&u));
    case(r#"arccos(&u)"#, &|| arccos(&u));
    case(r#"arctanh(&u)"#, &|| arctanh(&u));
    case(r#"erfinv(&u)"#, &|| erfinv(&u));
    case(r#"reciprocal(&u)"#, &|| reciprocal(&u));
    case(r#"arccosh(&add(&u,1)?)"#, &|| arccosh(&add(&u, 1)?));
    case(r#"sqrt(&z)"#, &|| sqrt(&z));
    case(r#"rsqrt(&z)"#, &|| rsqrt(&z));
    case(r#"log(&z)"#, &|| log(&z));
    case(r#"log2(&z)"#, &|| log2(&z));
    case(r#"log10(&z)"#, &|| log10(&z));
    case(r#"log1p(&z)"#, &|| log1p(&z));
    case(r#"exp(&z)"#, &|| exp(&z));
    case(r#"sin(&z)"#, &|| sin(&z));
    case(r#"cos(&z)"#, &|| cos(&z));
    case(r#"tan(&z)"#, &|| tan(&z));
    case(r#"arcsin(&z)"#, &|| arcsin(&z));
    case(r#"arccos(&z)"#, &|| arccos(&z));
    case(r#"arctan(&z)"#, &|| arctan(&z));
    case(r#"sinh(&z)"#, &|| sinh(&z));
    case(r#"cosh(&z)"#, &|| cosh(&z));
    case(r#"tanh(&z)"#, &|| tanh(&z));
    case(r#"arcsinh(&z)"#, &|| arcsinh(&z));
    case(r#"arccosh(&z)"#, &|| arccosh(&z));
    case(r#"arctanh(&z)"#, &|| arctanh(&z));
    case(r#"sign(&z)"#, &|| sign(&z));
    case(r#"square(&z)"#, &|| square(&z));
    case(r#"negative(&z)"#, &|| negative(&z));
    case(r#"conjugate(&z)"#, &|| conjugate(&z));
    case(r#"real(&z)"#, &|| real(&z));
    case(r#"imag(&z)"#, &|| imag(&z));
    case(r#"abs(&z)"#, &|| abs(&z));
    case(r#"reciprocal(&z)"#, &|| reciprocal(&z));
    case(r#"power(&z,2.0)"#, &|| power(&z, 2.0));
    case(r#"power(&z,&z)"#, &|| power(&z, &z));
    case(r#"multiply(&z,&z)"#, &|| multiply(&z, &z));
    case(r#"divide(&z,&y)"#, &|| divide(&z, &y));
    case(r#"round(&sp,0)"#, &|| round(&sp, 0));
    case(r#"round(&x,1)"#, &|| round(&x, 1));
    case(r#"round(&xi,-1)"#, &|| round(&xi, -1));
    case(r#"round(&z,0)"#, &|| round(&z, 0));
    case(r#"nan_to_num(&sp,Replacements::default())"#, &|| {
        nan_to_num(&sp, Replacements::default())
    });
    case(r#"add(&x,&y)"#, &|| add(&x, &y));
    case(r#"add(&t3,&v)"#, &|| add(&t3, &v));
    case(r#"add(&xi,1.5)"#, &|| add(&xi, 1.5));
    case(r#"subtract(&x,&y)"#, &|| subtract(&x, &y));
    case(r#"subtract(&t3,&v)"#, &|| subtract(&t3, &v));
    case(r#"subtract(&xi,1.5)"#, &|| subtract(&xi, 1.5));
    case(r#"multiply(&x,&y)"#, &|| multiply(&x, &y));
    case(r#"multiply(&t3,&v)"#, &|| multiply(&t3, &v));
    case(r#"multiply(&xi,1.5)"#, &|| multiply(&xi, 1.5));
    case(r#"maximum(&x,&y)"#, &|| maximum(&x, &y));
    case(r#"maximum(&t3,&v)"#, &|| maximum(&t3, &v));
    case(r#"maximum(&xi,1.5)"#, &|| maximum(&xi, 1.5));
    case(r#"minimum(&x,&y)"#, &|| minimum(&x, &y));
    case(r#"minimum(&t3,&v)"#, &|| minimum(&t3, &v));
    case(r#"minimum(&xi,1.5)"#, &|| minimum(&xi, 1.5));
    case(r#"logaddexp(&x,&y)"#, &|| logaddexp(&x, &y));
    case(r#"logaddexp(&t3,&v)"#, &|| logaddexp(&t3, &v));
    case(r#"logaddexp(&xi,1.5)"#, &|| logaddexp(&xi, 1.5));
    case(r#"arctan2(&x,&y)"#, &|| arctan2(&x, &y));
    case(r#"arctan2(&t3,&v)"#, &|| arctan2(&t3, &v));
    case(r#"arctan2(&xi,1.5)"#, &|| arctan2(&xi, 1.5));
    case(r#"divide(&x,&add(&square(&y)?,1)?)"#, &|| divide(&x, &add(&square(&y)?, 1)?));
    case(r#"divide(&xi,3)"#, &|| divide(&xi, 3));
    case(r#"divide(2,&xi)"#, &|| divide(2, &xi));
    case(r#"floor_divide(&xi,3)"#, &|| floor_divide(&xi, 3));
    case(r#"floor_divide(&x,0.75)"#, &|| floor_divide(&x, 0.75));
    case(r#"remainder(&xi,3)"#, &|| remainder(&xi, 3));
    case(r#"remainder(&xi,-3)"#, &|| remainder(&xi, -3));
    case(r#"remainder(&x,0.75)"#, &|| remainder(&x, 0.75));
    case(r#"power(&abs(&x)?,&y)"#, &|| power(&abs(&x)?, &y));
    case(r#"power(&xi,2)"#, &|| power(&xi, 2));
    case(r#"power(&x,3)"#, &|| power(&x, 3));
    case(r#"bitwise_and(&xi,&yi)"#, &|| bitwise_and(&xi, &yi));
    case(r#"bitwise_or(&xi,&yi)"#, &|| bitwise_or(&xi, &yi));
    case(r#"bitwise_xor(&xi,&yi)"#, &|| bitwise_xor(&xi, &yi));
    case(r#"left_shift(&yi,2)"#, &|| left_shift(&yi, 2));
    case(r#"right_shift(&yi,1)"#, &|| right_shift(&yi, 1));
    case(r#"bitwise_invert(&xi)"#, &|| bitwise_invert(&xi));
    case(r#"equal(&xi,&yi)"#, &|| equal(&xi, &yi));
    case(r#"equal(&sp,0)"#, &|| equal(&sp, 0));
    case(r#"not_equal(&xi,&yi)"#, &|| not_equal(&xi, &yi));
    case(r#"not_equal(&sp,0)"#, &|| not_equal(&sp, 0));
    case(r#"less(&xi,&yi)"#, &|| less(&xi, &yi));
    case(r#"less(&sp,0)"#, &|| less(&sp, 0));
    case(r#"less_equal(&xi,&yi)"#, &|| less_equal(&xi, &yi));
    case(r#"less_equal(&sp,0)"#, &|| less_equal(&sp, 0));
    case(r#"greater(&xi,&yi)"#, &|| greater(&xi, &yi));
    case(r#"greater(&sp,0)"#, &|| greater(&sp, 0));
    case(r#"greater_equal(&xi,&yi)"#, &|| greater_equal(&xi, &yi));
    case(r#"greater_equal(&sp,0)"#, &|| greater_equal(&sp, 0));
    case(r#"logical_and(&xi,&yi)"#, &|| logical_and(&xi, &yi));
    case(r#"logical_and(&sp,0)"#, &|| logical_and(&sp, 0));
    case(r#"logical_or(&xi,&yi)"#, &|| logical_or(&xi, &yi));
    case(r#"logical_or(&sp,0)"#, &|| logical_or(&sp, 0));
    case(r#"logical_not(&xi)"#, &|| logical_not(&xi));
    case(r#"isclose(&x,&y,Tolerance::default())"#, &|| isclose(&x, &y, Tolerance::default()));
    case(r#"isclose(&sp,&sp,Tolerance{equal_nan:true,..Default::default()})"#, &|| {
        isclose(&sp, &sp, Tolerance { equal_nan: true, ..Default::default() })
    });
    case(r#"clip(&x,-1,1.5)"#, &|| clip(&x, -1, 1.5));
    case(r#"where_(&greater(&x,0)?,&x,&v)"#, &|| where_(&greater(&x, 0)?, &x, &v));
    case(r#"where_(&xi,1,2.5)"#, &|| where_(&xi, 1, 2.5));
    case(r#"sum(&t3,(),false)"#, &|| sum(&t3, (), false));
    case(r#"sum(&t3,0,false)"#, &|| sum(&t3, 0, false));
    case(r#"sum(&t3,-1,false)"#, &|| sum(&t3, -1, false));
    case(r#"sum(&t3,[0,2],false)"#, &|| sum(&t3, [0, 2], false));
    case(r#"sum(&xi,1,true)"#, &|| sum(&xi, 1, true));
    case(r#"prod(&t3,(),false)"#, &|| prod(&t3, (), false));
    case(r#"prod(&t3,0,false)"#, &|| prod(&t3, 0, false));
    case(r#"prod(&t3,-1,false)"#, &|| prod(&t3, -1, false));
    case(r#"prod(&t3,[0,2],false)"#, &|| prod(&t3, [0, 2], false));
    case(r#"prod(&xi,1,true)"#, &|| prod(&xi, 1, true));
    case(r#"max(&t3,(),false)"#, &|| max(&t3, (), false));
    case(r#"max(&t3,0,false)"#, &|| max(&t3, 0, false));
    case(r#"max(&t3,-1,false)"#, &|| max(&t3, -1, false));
    case(r#"max(&t3,[0,2],false)"#, &|| max(&t3, [0, 2], false));
    case(r#"max(&xi,1,true)"#, &|| max(&xi, 1, true));
    case(r#"min(&t3,(),false)"#, &|| min(&t3, (), false));
    case(r#"min(&t3,0,false)"#, &|| min(&t3, 0, false));
    case(r#"min(&t3,-1,false)"#, &|| min(&t3, -1, false));
    case(r#"min(&t3,[0,2],false)"#, &|| min(&t3, [0, 2], false));
    case(r#"min(&xi,1,true)"#, &|| min(&xi, 1, true));
    case(r#"mean(&t3,(),false)"#, &|| mean(&t3, (), false));
    case(r#"mean(&t3,0,false)"#, &|| mean(&t3, 0, false));
    case(r#"mean(&t3,-1,false)"#, &|| mean(&t3, -1, false));
    case(r#"mean(&t3,[0,2],false)"#, &|| mean(&t3, [0, 2], false));
    case(r#"mean(&xi,1,true)"#, &|| mean(&xi, 1, true));
    case(r#"var(&t3,(),false,0)"#, &|| var(&t3, (), false, 0));
    case(r#"var(&t3,(),false,1)"#, &|| var(&t3, (), false, 1));
    case(r#"var(&t3,1,false,0)"#, &|| var(&t3, 1, false, 0));
    case(r#"var(&t3,1,false,1)"#, &|| var(&t3, 1, false, 1));
    case(r#"std(&t3,(),false,0)"#, &|| std(&t3, (), false, 0));
    case(r#"std(&t3,(),false,1)"#, &|| std(&t3, (), false, 1));
    case(r#"std(&t3,1,false,0)"#, &|| std(&t3, 1, false, 0));
    case(r#"std(&t3,1,false,1)"#, &|| std(&t3, 1, false, 1));
    case(r#"all(&xi,1,false)"#, &|| all(&xi, 1, false));
    case(r#"any(&xi,0,true)"#, &|| any(&xi, 0, true));
    case(r#"median(&t3,1,false)"#, &|| median(&t3, 1, false));
    case(r#"median(&t3,[0,2],true)"#, &|| median(&t3, [0, 2], true));
    case(r#"median(&xi,(),false)"#, &|| median(&xi, (), false));
    case(r#"argmax(&t3,1,false)"#, &|| argmax(&t3, 1, false));
    case(r#"argmax(&t3,(),true)"#, &|| argmax(&t3, (), true));
    case(r#"argmin(&t3,1,false)"#, &|| argmin(&t3, 1, false));
    case(r#"argmin(&t3,(),true)"#, &|| argmin(&t3, (), true));
    case(r#"sort(&t3,-1)"#, &|| sort(&t3, -1));
    case(r#"take_along_axis(&t3,&argsort(&t3,-1)?,-1)"#, &|| {
        take_along_axis(&t3, &argsort(&t3, -1)?, -1)
    });
    case(r#"sort(&t3,0)"#, &|| sort(&t3, 0));
    case(r#"take_along_axis(&t3,&argsort(&t3,0)?,0)"#, &|| {
        take_along_axis(&t3, &argsort(&t3, 0)?, 0)
    });
    case(r#"sort(&t3,())"#, &|| sort(&t3, ()));
    case(r#"topk(&t3,2,1)"#, &|| topk(&t3, 2, 1));
    case(r#"softmax(&t3,-1)"#, &|| softmax(&t3, -1));
    case(r#"softmax(&t3,[0,1])"#, &|| softmax(&t3, [0, 1]));
    case(r#"logsumexp(&t3,1,false)"#, &|| logsumexp(&t3, 1, false));
    case(r#"logsumexp(&t3,(),true)"#, &|| logsumexp(&t3, (), true));
    case(r#"log_softmax(&t3,-1)"#, &|| log_softmax(&t3, -1));
    case(r#"logsumexp(&full([2,3],f64::NEG_INFINITY,DType::F32)?,1,false)"#, &|| {
        logsumexp(&full([2, 3], f64::NEG_INFINITY, DType::F32)?, 1, false)
    });
    case(r#"reshape(&t3,[4,-1])"#, &|| reshape(&t3, [4, -1]));
    case(r#"flatten(&t3,1,-1)"#, &|| flatten(&t3, 1, -1));
    case(r#"unflatten(&t3,-1,[2,-1])"#, &|| unflatten(&t3, -1, [2, -1]));
    case(r#"transpose(&t3,())"#, &|| transpose(&t3, ()));
    case(r#"transpose(&t3,[1,0,-1])"#, &|| transpose(&t3, [1, 0, -1]));
    case(r#"swapaxes(&t3,0,-1)"#, &|| swapaxes(&t3, 0, -1));
    case(r#"moveaxis(&t3,0,1)"#, &|| moveaxis(&t3, 0, 1));
    case(r#"concatenate(&[&x,&xi],0)"#, &|| concatenate(&[&x, &xi], 0));
    case(r#"concatenate(&[&x,&y],())"#, &|| concatenate(&[&x, &y], ()));
    case(r#"stack(&[&x,&y],-1)"#, &|| stack(&[&x, &y], -1));
    case(r#"Ok(split(&t3,[1,2],1)?.remove(1))"#, &|| Ok(split(&t3, [1, 2], 1)?.remove(1)));
    case(r#"Ok(split(&t3,2,2)?.remove(1))"#, &|| Ok(split(&t3, 2, 2)?.remove(1)));
    case(r#"tile(&x,[2,1,3])"#, &|| tile(&x, [2, 1, 3]));
    case(r#"tile(&t3,[2])"#, &|| tile(&t3, [2]));
    case(r#"repeat(&x,3,1)"#, &|| repeat(&x, 3, 1));
    case(r#"repeat(&x,2,())"#, &|| repeat(&x, 2, ()));
    case(r#"roll(&x,5,1)"#, &|| roll(&x, 5, 1));
    case(r#"roll(&x,-3,())"#, &|| roll(&x, -3, ()));
    case(r#"roll(&x,[1,-2],[0,1])"#, &|| roll(&x, [1, -2], [0, 1]));
    case(r#"flip(&x,1)"#, &|| flip(&x, 1));
    case(r#"pad(&x,[(1,0),(2,3)],7.5)"#, &|| pad(&x, [(1, 0), (2, 3)], 7.5));
    case(r#"pad(&x,(1,2),PadMode::Edge)"#, &|| pad(&x, (1, 2), PadMode::Edge));
    case(r#"diagonal(&t3,-2,1,2)"#, &|| diagonal(&t3, -2, 1, 2));
    case(r#"diag(&v,-2)"#, &|| diag(&v, -2));
    case(r#"eye_at(3,4,-2,DType::F32)"#, &|| eye_at(3, 4, -2, DType::F32));
    case(r#"tri(3,4,-2,DType::F32)"#, &|| tri(3, 4, -2, DType::F32));
    case(r#"tril(&t3,-2)"#, &|| tril(&t3, -2));
    case(r#"triu(&t3,-2)"#, &|| triu(&t3, -2));
    case(r#"diagonal(&t3,-1,1,2)"#, &|| diagonal(&t3, -1, 1, 2));
    case(r#"diag(&v,-1)"#, &|| diag(&v, -1));
    case(r#"eye_at(3,4,-1,DType::F32)"#, &|| eye_at(3, 4, -1, DType::F32));
    case(r#"tri(3,4,-1,DType::F32)"#, &|| tri(3, 4, -1, DType::F32));
    case(r#"tril(&t3,-1)"#, &|| tril(&t3, -1));
    case(r#"triu(&t3,-1)"#, &|| triu(&t3, -1));
    case(r#"diagonal(&t3,0,1,2)"#, &|| diagonal(&t3, 0, 1, 2));
    case(r#"diag(&v,0)"#, &|| diag(&v, 0));
    case(r#"eye_at(3,4,0,DType::F32)"#, &|| eye_at(3, 4, 0, DType::F32));
    case(r#"tri(3,4,0,DType::F32)"#, &|| tri(3, 4, 0, DType::F32));
    case(r#"tril(&t3,0)"#, &|| tril(&t3, 0));
    case(r#"triu(&t3,0)"#, &|| triu(&t3, 0));
    case(r#"diagonal(&t3,1,1,2)"#, &|| diagonal(&t3, 1, 1, 2));
    case(r#"diag(&v,1)"#, &|| diag(&v, 1));
    case(r#"eye_at(3,4,1,DType::F32)"#, &|| eye_at(3, 4, 1, DType::F32));
    case(r#"tri(3,4,1,DType::F32)"#, &|| tri(3, 4, 1, DType::F32));
    case(r#"tril(&t3,1)"#, &|| tril(&t3, 1));
    case(r#"triu(&t3,1)"#, &|| triu(&t3, 1));
    case(r#"diagonal(&t3,2,1,2)"#, &|| diagonal(&t3, 2, 1, 2));
    case(r#"diag(&v,2)"#, &|| diag(&v, 2));
    case(r#"eye_at(3,4,2,DType::F32)"#, &|| eye_at(3, 4, 2, DType::F32));
    case(r#"tri(3,4,2,DType::F32)"#, &|| tri(3, 4, 2, DType::F32));
    case(r#"tril(&t3,2)"#, &|| tril(&t3, 2));
    case(r#"triu(&t3,2)"#, &|| triu(&t3, 2));
    case(r#"diagonal(&t3,3,1,2)"#, &|| diagonal(&t3, 3, 1, 2));
    case(r#"diag(&v,3)"#, &|| diag(&v, 3));
    case(r#"eye_at(3,4,3,DType::F32)"#, &|| eye_at(3, 4, 3, DType::F32));
    case(r#"tri(3,4,3,DType::F32)"#, &|| tri(3, 4, 3, DType::F32));
    case(r#"tril(&t3,3)"#, &|| tril(&t3, 3));
    case(r#"triu(&t3,3)"#, &|| triu(&t3, 3));
    case(r#"diagonal(&t3,4,1,2)"#, &|| diagonal(&t3, 4, 1, 2));
    case(r#"diag(&v,4)"#, &|| diag(&v, 4));
    case(r#"eye_at(3,4,4,DType::F32)"#, &|| eye_at(3, 4, 4, DType::F32));
    case(r#"tri(3,4,4,DType::F32)"#, &|| tri(3, 4, 4, DType::F32));
    case(r#"tril(&t3,4)"#, &|| tril(&t3, 4));
    case(r#"triu(&t3,4)"#, &|| triu(&t3, 4));
    case(r#"trace(&x,1,0,1)"#, &|| trace(&x, 1, 0, 1));
    case(r#"arange(1,10,3)"#, &|| arange(1, 10, 3));
    case(r#"arange(1.0,2.0,0.25)"#, &|| arange(1.0, 2.0, 0.25));
    case(r#"arange(5,0,-2)"#, &|| arange(5, 0, -2));
    case(r#"linspace(-1.0,2.0,7,DType::F32)"#, &|| linspace(-1.0, 2.0, 7, DType::F32));
    case(r#"Ok(meshgrid(&[&v,&idx],false)?.remove(0))"#, &|| {
        Ok(meshgrid(&[&v, &idx], false)?.remove(0))
    });
    case(r#"Ok(meshgrid(&[&v,&idx],true)?.remove(1))"#, &|| {
        Ok(meshgrid(&[&v, &idx], true)?.remove(1))
    });
    case(r#"take(&x,&idx,1)"#, &|| take(&x, &idx, 1));
    case(r#"take(&t3,&ix2,2)"#, &|| take(&t3, &ix2, 2));
    case(r#"take(&x,&idx,())"#, &|| take(&x, &idx, ()));
    case(r#"take(&x,-1,0)"#, &|| take(&x, -1, 0));
    case(r#"take(&t3,&iu,2)"#, &|| take(&t3, &iu, 2));
    case(r#"take_along_axis(&x,&reshape(&idx,[3,1])?,1)"#, &|| {
        take_along_axis(&x, &reshape(&idx, [3, 1])?, 1)
    });
    case(r#"put_along_axis(&x,&reshape(&idx,[3,1])?,9.5,1)"#, &|| {
        put_along_axis(&x, &reshape(&idx, [3, 1])?, 9.5, 1)
    });
    case(r#"index(&t3,&[S::at(1)])"#, &|| index(&t3, &[S::at(1)]));
    case(r#"at_add(&t3,&[S::at(1)],2.5)"#, &|| at_add(&t3, &[S::at(1)], 2.5));
    case(r#"at_set(&t3,&[S::at(1)],&index(&multiply(&t3,2)?,&[S::at(1)])?)"#, &|| {
        at_set(&t3, &[S::at(1)], &index(&multiply(&t3, 2)?, &[S::at(1)])?)
    });
    case(r#"at_max(&t3,&[S::at(1)],0.5)"#, &|| at_max(&t3, &[S::at(1)], 0.5));
    case(r#"at_multiply(&t3,&[S::at(1)],2)"#, &|| at_multiply(&t3, &[S::at(1)], 2));
    case(r#"at_min(&t3,&[S::at(1)],0.5)"#, &|| at_min(&t3, &[S::at(1)], 0.5));
    case(r#"index(&t3,&[S::at(-1),S::range(1..)])"#, &|| index(&t3, &[S::at(-1), S::range(1..)]));
    case(r#"at_add(&t3,&[S::at(-1),S::range(1..)],2.5)"#, &|| {
        at_add(&t3, &[S::at(-1), S::range(1..)], 2.5)
    });
    case(
        r#"at_set(&t3,&[S::at(-1),S::range(1..)],&index(&multiply(&t3,2)?,&[S::at(-1),S::range(1..)])?)"#,
        &|| {
            at_set(
                &t3,
                &[S::at(-1), S::range(1..)],
                &index(&multiply(&t3, 2)?, &[S::at(-1), S::range(1..)])?,
            )
        },
    );
    case(r#"at_max(&t3,&[S::at(-1),S::range(1..)],0.5)"#, &|| {
        at_max(&t3, &[S::at(-1), S::range(1..)], 0.5)
    });
    case(r#"at_multiply(&t3,&[S::at(-1),S::range(1..)],2)"#, &|| {
        at_multiply(&t3, &[S::at(-1), S::range(1..)], 2)
    });
    case(r#"at_min(&t3,&[S::at(-1),S::range(1..)],0.5)"#, &|| {
        at_min(&t3, &[S::at(-1), S::range(1..)], 0.5)
    });
    case(r#"index(&t3,&[S::ellipsis(),S::at(2)])"#, &|| index(&t3, &[S::ellipsis(), S::at(2)]));
    case(r#"at_add(&t3,&[S::ellipsis(),S::at(2)],2.5)"#, &|| {
        at_add(&t3, &[S::ellipsis(), S::at(2)], 2.5)
    });
    case(
        r#"at_set(&t3,&[S::ellipsis(),S::at(2)],&index(&multiply(&t3,2)?,&[S::ellipsis(),S::at(2)])?)"#,
        &|| {
            at_set(
                &t3,
                &[S::ellipsis(), S::at(2)],
                &index(&multiply(&t3, 2)?, &[S::ellipsis(), S::at(2)])?,
            )
        },
    );
    case(r#"at_max(&t3,&[S::ellipsis(),S::at(2)],0.5)"#, &|| {
        at_max(&t3, &[S::ellipsis(), S::at(2)], 0.5)
    });
    case(r#"at_multiply(&t3,&[S::ellipsis(),S::at(2)],2)"#, &|| {
        at_multiply(&t3, &[S::ellipsis(), S::at(2)], 2)
    });
    case(r#"at_min(&t3,&[S::ellipsis(),S::at(2)],0.5)"#, &|| {
        at_min(&t3, &[S::ellipsis(), S::at(2)], 0.5)
    });
    case(r#"index(&t3,&[S::range(..),S::range(..).step(-1)])"#, &|| {
        index(&t3, &[S::range(..), S::range(..).step(-1)])
    });
    case(r#"at_add(&t3,&[S::range(..),S::range(..).step(-1)],2.5)"#, &|| {
        at_add(&t3, &[S::range(..), S::range(..).step(-1)], 2.5)
    });
    case(
        r#"at_set(&t3,&[S::range(..),S::range(..).step(-1)],&index(&multiply(&t3,2)?,&[S::range(..),S::range(..).step(-1)])?)"#,
        &|| {
            at_set(
                &t3,
                &[S::range(..), S::range(..).step(-1)],
                &index(&multiply(&t3, 2)?, &[S::range(..), S::range(..).step(-1)])?,
            )
        },
    );
    case(r#"at_max(&t3,&[S::range(..),S::range(..).step(-1)],0.5)"#, &|| {
        at_max(&t3, &[S::range(..), S::range(..).step(-1)], 0.5)
    });
    case(r#"at_multiply(&t3,&[S::range(..),S::range(..).step(-1)],2)"#, &|| {
        at_multiply(&t3, &[S::range(..), S::range(..).step(-1)], 2)
    });
    case(r#"at_min(&t3,&[S::range(..),S::range(..).step(-1)],0.5)"#, &|| {
        at_min(&t3, &[S::range(..), S::range(..).step(-1)], 0.5)
    });
    case(r#"index(&t3,&[S::range(..),S::range(..),S::range(..).step(-2)])"#, &|| {
        index(&t3, &[S::range(..), S::range(..), S::range(..).step(-2)])
    });
    case(r#"at_add(&t3,&[S::range(..),S::range(..),S::range(..).step(-2)],2.5)"#, &|| {
        at_add(&t3, &[S::range(..), S::range(..), S::range(..).step(-2)], 2.5)
    });
    case(
        r#"at_set(&t3,&[S::range(..),S::range(..),S::range(..).step(-2)],&index(&multiply(&t3,2)?,&[S::range(..),S::range(..),S::range(..).step(-2)])?)"#,
        &|| {
            at_set(
                &t3,
                &[S::range(..), S::range(..), S::range(..).step(-2)],
                &index(&multiply(&t3, 2)?, &[S::range(..), S::range(..), S::range(..).step(-2)])?,
            )
        },
    );
    case(r#"at_max(&t3,&[S::range(..),S::range(..),S::range(..).step(-2)],0.5)"#, &|| {
        at_max(&t3, &[S::range(..), S::range(..), S::range(..).step(-2)], 0.5)
    });
    case(r#"at_multiply(&t3,&[S::range(..),S::range(..),S::range(..).step(-2)],2)"#, &|| {
        at_multiply(&t3, &[S::range(..), S::range(..), S::range(..).step(-2)], 2)
    });
    case(r#"at_min(&t3,&[S::range(..),S::range(..),S::range(..).step(-2)],0.5)"#, &|| {
        at_min(&t3, &[S::range(..), S::range(..), S::range(..).step(-2)], 0.5)
    });
    case(r#"index(&t3,&[S::range(..),S::range(0..2),S::range(1..).step(2)])"#, &|| {
        index(&t3, &[S::range(..), S::range(0..2), S::range(1..).step(2)])
    });
    case(r#"at_add(&t3,&[S::range(..),S::range(0..2),S::range(1..).step(2)],2.5)"#, &|| {
        at_add(&t3, &[S::range(..), S::range(0..2), S::range(1..).step(2)], 2.5)
    });
    case(
        r#"at_set(&t3,&[S::range(..),S::range(0..2),S::range(1..).step(2)],&index(&multiply(&t3,2)?,&[S::range(..),S::range(0..2),S::range(1..).step(2)])?)"#,
        &|| {
            at_set(
                &t3,
                &[S::range(..), S::range(0..2), S::range(1..).step(2)],
                &index(&multiply(&t3, 2)?, &[S::range(..), S::range(0..2), S::range(1..).step(2)])?,
            )
        },
    );
    case(r#"at_max(&t3,&[S::range(..),S::range(0..2),S::range(1..).step(2)],0.5)"#, &|| {
        at_max(&t3, &[S::range(..), S::range(0..2), S::range(1..).step(2)], 0.5)
    });
    case(r#"at_multiply(&t3,&[S::range(..),S::range(0..2),S::range(1..).step(2)],2)"#, &|| {
        at_multiply(&t3, &[S::range(..), S::range(0..2), S::range(1..).step(2)], 2)
    });
    case(r#"at_min(&t3,&[S::range(..),S::range(0..2),S::range(1..).step(2)],0.5)"#, &|| {
        at_min(&t3, &[S::range(..), S::range(0..2), S::range(1..).step(2)], 0.5)
    });
    case(r#"index(&t3,&[S::range(..),S::array(&idx)])"#, &|| {
        index(&t3, &[S::range(..), S::array(&idx)])
    });
    case(r#"at_add(&t3,&[S::range(..),S::array(&idx)],2.5)"#, &|| {
        at_add(&t3, &[S::range(..), S::array(&idx)], 2.5)
    });
    case(
        r#"at_set(&t3,&[S::range(..),S::array(&idx)],&index(&multiply(&t3,2)?,&[S::range(..),S::array(&idx)])?)"#,
        &|| {
            at_set(
                &t3,
                &[S::range(..), S::array(&idx)],
                &index(&multiply(&t3, 2)?, &[S::range(..), S::array(&idx)])?,
            )
        },
    );
    case(r#"at_max(&t3,&[S::range(..),S::array(&idx)],0.5)"#, &|| {
        at_max(&t3, &[S::range(..), S::array(&idx)], 0.5)
    });
    case(r#"at_multiply(&t3,&[S::range(..),S::array(&idx)],2)"#, &|| {
        at_multiply(&t3, &[S::range(..), S::array(&idx)], 2)
    });
    case(r#"at_min(&t3,&[S::range(..),S::array(&idx)],0.5)"#, &|| {
        at_min(&t3, &[S::range(..), S::array(&idx)], 0.5)
    });
    case(r#"index(&t3,&[S::range(..),S::range(1..3),S::array(&iu)])"#, &|| {
        index(&t3, &[S::range(..), S::range(1..3), S::array(&iu)])
    });
    case(r#"at_add(&t3,&[S::range(..),S::range(1..3),S::array(&iu)],2.5)"#, &|| {
        at_add(&t3, &[S::range(..), S::range(1..3), S::array(&iu)], 2.5)
    });
    case(
        r#"at_set(&t3,&[S::range(..),S::range(1..3),S::array(&iu)],&index(&multiply(&t3,2)?,&[S::range(..),S::range(1..3),S::array(&iu)])?)"#,
        &|| {
            at_set(
                &t3,
                &[S::range(..), S::range(1..3), S::array(&iu)],
                &index(&multiply(&t3, 2)?, &[S::range(..), S::range(1..3), S::array(&iu)])?,
            )
        },
    );
    case(r#"at_max(&t3,&[S::range(..),S::range(1..3),S::array(&iu)],0.5)"#, &|| {
        at_max(&t3, &[S::range(..), S::range(1..3), S::array(&iu)], 0.5)
    });
    case(r#"at_multiply(&t3,&[S::range(..),S::range(1..3),S::array(&iu)],2)"#, &|| {
        at_multiply(&t3, &[S::range(..), S::range(1..3), S::array(&iu)], 2)
    });
    case(r#"at_min(&t3,&[S::range(..),S::range(1..3),S::array(&iu)],0.5)"#, &|| {
        at_min(&t3, &[S::range(..), S::range(1..3), S::array(&iu)], 0.5)
    });
    case(r#"index(&t3,&[S::array(&ix2),S::array(&idx)])"#, &|| {
        index(&t3, &[S::array(&ix2), S::array(&idx)])
    });
    case(r#"at_add(&t3,&[S::array(&ix2),S::array(&idx)],2.5)"#, &|| {
        at_add(&t3, &[S::array(&ix2), S::array(&idx)], 2.5)
    });
    case(
        r#"at_set(&t3,&[S::array(&ix2),S::array(&idx)],&index(&multiply(&t3,2)?,&[S::array(&ix2),S::array(&idx)])?)"#,
        &|| {
            at_set(
                &t3,
                &[S::array(&ix2), S::array(&idx)],
                &index(&multiply(&t3, 2)?, &[S::array(&ix2), S::array(&idx)])?,
            )
        },
    );
    case(r#"at_max(&t3,&[S::array(&ix2),S::array(&idx)],0.5)"#, &|| {
        at_max(&t3, &[S::array(&ix2), S::array(&idx)], 0.5)
    });
    case(r#"at_multiply(&t3,&[S::array(&ix2),S::array(&idx)],2)"#, &|| {
        at_multiply(&t3, &[S::array(&ix2), S::array(&idx)], 2)
    });
    case(r#"at_min(&t3,&[S::array(&ix2),S::array(&idx)],0.5)"#, &|| {
        at_min(&t3, &[S::array(&ix2), S::array(&idx)], 0.5)
    });
    case(r#"index(&t3,&[S::array(&ix2),S::range(..),S::array(&iu)])"#, &|| {
        index(&t3, &[S::array(&ix2), S::range(..), S::array(&iu)])
    });
    case(r#"at_add(&t3,&[S::array(&ix2),S::range(..),S::array(&iu)],2.5)"#, &|| {
        at_add(&t3, &[S::array(&ix2), S::range(..), S::array(&iu)], 2.5)
    });
    case(
        r#"at_set(&t3,&[S::array(&ix2),S::range(..),S::array(&iu)],&index(&multiply(&t3,2)?,&[S::array(&ix2),S::range(..),S::array(&iu)])?)"#,
        &|| {
            at_set(
                &t3,
                &[S::array(&ix2), S::range(..), S::array(&iu)],
                &index(&multiply(&t3, 2)?, &[S::array(&ix2), S::range(..), S::array(&iu)])?,
            )
        },
    );
    case(r#"at_max(&t3,&[S::array(&ix2),S::range(..),S::array(&iu)],0.5)"#, &|| {
        at_max(&t3, &[S::array(&ix2), S::range(..), S::array(&iu)], 0.5)
    });
    case(r#"at_multiply(&t3,&[S::array(&ix2),S::range(..),S::array(&iu)],2)"#, &|| {
        at_multiply(&t3, &[S::array(&ix2), S::range(..), S::array(&iu)], 2)
    });
    case(r#"at_min(&t3,&[S::array(&ix2),S::range(..),S::array(&iu)],0.5)"#, &|| {
        at_min(&t3, &[S::array(&ix2), S::range(..), S::array(&iu)], 0.5)
    });
    case(r#"index(&t3,&[S::at(1),S::range(..),S::array(&iu)])"#, &|| {
        index(&t3, &[S::at(1), S::range(..), S::array(&iu)])
    });
    case(r#"at_add(&t3,&[S::at(1),S::range(..),S::array(&iu)],2.5)"#, &|| {
        at_add(&t3, &[S::at(1), S::range(..), S::array(&iu)], 2.5)
    });
    case(
        r#"at_set(&t3,&[S::at(1),S::range(..),S::array(&iu)],&index(&multiply(&t3,2)?,&[S::at(1),S::range(..),S::array(&iu)])?)"#,
        &|| {
            at_set(
                &t3,
                &[S::at(1), S::range(..), S::array(&iu)],
                &index(&multiply(&t3, 2)?, &[S::at(1), S::range(..), S::array(&iu)])?,
            )
        },
    );
    case(r#"at_max(&t3,&[S::at(1),S::range(..),S::array(&iu)],0.5)"#, &|| {
        at_max(&t3, &[S::at(1), S::range(..), S::array(&iu)], 0.5)
    });
    case(r#"at_multiply(&t3,&[S::at(1),S::range(..),S::array(&iu)],2)"#, &|| {
        at_multiply(&t3, &[S::at(1), S::range(..), S::array(&iu)], 2)
    });
    case(r#"at_min(&t3,&[S::at(1),S::range(..),S::array(&iu)],0.5)"#, &|| {
        at_min(&t3, &[S::at(1), S::range(..), S::array(&iu)], 0.5)
    });
    case(r#"index(&t3,&[S::range(..),S::range(..).step(-1),S::array(&iu)])"#, &|| {
        index(&t3, &[S::range(..), S::range(..).step(-1), S::array(&iu)])
    });
    case(r#"at_add(&t3,&[S::range(..),S::range(..).step(-1),S::array(&iu)],2.5)"#, &|| {
        at_add(&t3, &[S::range(..), S::range(..).step(-1), S::array(&iu)], 2.5)
    });
    case(
        r#"at_set(&t3,&[S::range(..),S::range(..).step(-1),S::array(&iu)],&index(&multiply(&t3,2)?,&[S::range(..),S::range(..).step(-1),S::array(&iu)])?)"#,
        &|| {
            at_set(
                &t3,
                &[S::range(..), S::range(..).step(-1), S::array(&iu)],
                &index(&multiply(&t3, 2)?, &[S::range(..), S::range(..).step(-1), S::array(&iu)])?,
            )
        },
    );
    case(r#"at_max(&t3,&[S::range(..),S::range(..).step(-1),S::array(&iu)],0.5)"#, &|| {
        at_max(&t3, &[S::range(..), S::range(..).step(-1), S::array(&iu)], 0.5)
    });
    case(r#"at_multiply(&t3,&[S::range(..),S::range(..).step(-1),S::array(&iu)],2)"#, &|| {
        at_multiply(&t3, &[S::range(..), S::range(..).step(-1), S::array(&iu)], 2)
    });
    case(r#"at_min(&t3,&[S::range(..),S::range(..).step(-1),S::array(&iu)],0.5)"#, &|| {
        at_min(&t3, &[S::range(..), S::range(..).step(-1), S::array(&iu)], 0.5)
    });
    case(r#"index(&t3,&[S::new_axis(),S::at(0),S::new_axis(),S::array(&idx)])"#, &|| {
        index(&t3, &[S::new_axis(), S::at(0), S::new_axis(), S::array(&idx)])
    });
    case(r#"matmul(&x,&m)"#, &|| matmul(&x, &m));
    case(r#"matmul(&t3,&m)"#, &|| matmul(&t3, &m));
    case(r#"matmul(&t3,&b3)"#, &|| matmul(&t3, &b3));
    case(r#"matmul(&v,&m)"#, &|| matmul(&v, &m));
    case(r#"matmul(&x,&v)"#, &|| matmul(&x, &v));
    case(r#"matmul(&v,&v)"#, &|| matmul(&v, &v));
    case(r#"matmul(&x,&b3)"#, &|| matmul(&x, &b3));
    case(r#"matmul(&v,&b3)"#, &|| matmul(&v, &b3));
    case(r#"matmul(&t3,&v)"#, &|| matmul(&t3, &v));
    case(r#"matmul(&z,&transpose(&z,())?)"#, &|| matmul(&z, &transpose(&z, ())?));
    case(r#"inner(&t3,&x)"#, &|| inner(&t3, &x));
    case(r#"outer(&v,&idx)"#, &|| outer(&v, &idx));
    case(r#"tensordot(&t3,&b3,([0,2],[0,1]))"#, &|| tensordot(&t3, &b3, ([0, 2], [0, 1])));
    case(r#"tensordot(&t3,&m,1)"#, &|| tensordot(&t3, &m, 1));
    case(r#"kron(&x,&v)"#, &|| kron(&x, &v));
    case(r#"kron(&v,&x)"#, &|| kron(&v, &x));
    case(r#"addmm(&transpose(&index(&m,&[S::at(0)])?,())?,&x,&m,0.5,2.0)"#, &|| {
        addmm(&transpose(&index(&m, &[S::at(0)])?, ())?, &x, &m, 0.5, 2.0)
    });
    case(r#"vecdot(&x,&y,-1)"#, &|| vecdot(&x, &y, -1));
    case(r#"einsum("ij,jk->ik",&[&x,&m])"#, &|| einsum("ij,jk->ik", &[&x, &m]));
    case(r#"einsum("ij,jk",&[&x,&m])"#, &|| einsum("ij,jk", &[&x, &m]));
    case(r#"einsum("bij,bjk->bik",&[&t3,&b3])"#, &|| einsum("bij,bjk->bik", &[&t3, &b3]));
    case(r#"einsum("bij,bjk->ki",&[&t3,&b3])"#, &|| einsum("bij,bjk->ki", &[&t3, &b3]));
    case(r#"einsum("ij->ji",&[&x])"#, &|| einsum("ij->ji", &[&x]));
    case(r#"einsum("ij->",&[&x])"#, &|| einsum("ij->", &[&x]));
    case(r#"einsum("ij,ij->i",&[&x,&y])"#, &|| einsum("ij,ij->i", &[&x, &y]));
    case(r#"einsum("i,j->ij",&[&v,&v])"#, &|| einsum("i,j->ij", &[&v, &v]));
    case(r#"einsum("bij,jk,k->bi",&[&t3,&m,&index(&m,&[S::at(0)])?])"#, &|| {
        einsum("bij,jk,k->bi", &[&t3, &m, &index(&m, &[S::at(0)])?])
    });
    case(r#"einsum("...ij,...jk->...ik",&[&t3,&b3])"#, &|| {
        einsum("...ij,...jk->...ik", &[&t3, &b3])
    });
    case(r#"einsum("...i->...",&[&t3])"#, &|| einsum("...i->...", &[&t3]));
    case(r#"einsum("i...,i...->...",&[&x,&y])"#, &|| einsum("i...,i...->...", &[&x, &y]));
    case(r#"einsum("ij,kj->ikj",&[&x,&y])"#, &|| einsum("ij,kj->ikj", &[&x, &y]));
    case(r#"einsum("bij,ij->b",&[&t3,&x])"#, &|| einsum("bij,ij->b", &[&t3, &x]));
    case(r#"einsum("ab,cd->abcd",&[&x,&m])"#, &|| einsum("ab,cd->abcd", &[&x, &m]));
    case(
        r#"einsum("iij->j",&[&reshape(&index(&t3,&[S::range(..),S::range(0..2)])?,[2,2,4])?])"#,
        &|| {
            einsum("iij->j", &[&reshape(&index(&t3, &[S::range(..), S::range(0..2)])?, [2, 2, 4])?])
        },
    );
    case(r#"einsum("ii->i",&[&index(&m,&[S::range(..),S::range(0..4)])?])"#, &|| {
        einsum("ii->i", &[&index(&m, &[S::range(..), S::range(0..4)])?])
    });
    case(r#"conv2d(&im,&w,&ConvOptions::new())"#, &|| conv2d(&im, &w, &ConvOptions::new()));
    case(
        r#"conv2d(&im,&w,&ConvOptions::new().stride([2,1]).padding([1,0]).dilation([1,2]))"#,
        &|| conv2d(&im, &w, &ConvOptions::new().stride([2, 1]).padding([1, 0]).dilation([1, 2])),
    );
    case(r#"conv2d(&im,&wg,&ConvOptions::new().groups(2).padding(1))"#, &|| {
        conv2d(&im, &wg, &ConvOptions::new().groups(2).padding(1))
    });
    case(r#"conv1d(&i1,&w1,&ConvOptions::new().stride(2).padding(1))"#, &|| {
        conv1d(&i1, &w1, &ConvOptions::new().stride(2).padding(1))
    });
    case(r#"conv3d(&i3,&w3,&ConvOptions::new().padding(1))"#, &|| {
        conv3d(&i3, &w3, &ConvOptions::new().padding(1))
    });
    case(
        r#"conv_general(&im,&w,&ConvOptions::new().input_dilation(2).flip(true).padding(2))"#,
        &|| conv_general(&im, &w, &ConvOptions::new().input_dilation(2).flip(true).padding(2)),
    );
    case(
        r#"conv_transpose2d(&im,&w,&ConvOptions::new().stride(1).padding(0).dilation(1).output_padding(0))"#,
        &|| {
            conv_transpose2d(
                &im,
                &w,
                &ConvOptions::new().stride(1).padding(0).dilation(1).output_padding(0),
            )
        },
    );
    case(
        r#"conv_transpose1d(&i1,&w1,&ConvOptions::new().stride(1).padding(0).dilation(1).output_padding(0))"#,
        &|| {
            conv_transpose1d(
                &i1,
                &w1,
                &ConvOptions::new().stride(1).padding(0).dilation(1).output_padding(0),
            )
        },
    );
    case(
        r#"conv_transpose2d(&im,&w,&ConvOptions::new().stride(2).padding(1).dilation(1).output_padding(1))"#,
        &|| {
            conv_transpose2d(
                &im,
                &w,
                &ConvOptions::new().stride(2).padding(1).dilation(1).output_padding(1),
            )
        },
    );
    case(
        r#"conv_transpose1d(&i1,&w1,&ConvOptions::new().stride(2).padding(1).dilation(1).output_padding(1))"#,
        &|| {
            conv_transpose1d(
                &i1,
                &w1,
                &ConvOptions::new().stride(2).padding(1).dilation(1).output_padding(1),
            )
        },
    );
    case(
        r#"conv_transpose2d(&im,&w,&ConvOptions::new().stride(2).padding(0).dilation(2).output_padding(0))"#,
        &|| {
            conv_transpose2d(
                &im,
                &w,
                &ConvOptions::new().stride(2).padding(0).dilation(2).output_padding(0),
            )
        },
    );
    case(
        r#"conv_transpose1d(&i1,&w1,&ConvOptions::new().stride(2).padding(0).dilation(2).output_padding(0))"#,
        &|| {
            conv_transpose1d(
                &i1,
                &w1,
                &ConvOptions::new().stride(2).padding(0).dilation(2).output_padding(0),
            )
        },
    );
    case(
        r#"conv_transpose2d(&im,&w,&ConvOptions::new().stride(3).padding(2).dilation(1).output_padding(2))"#,
        &|| {
            conv_transpose2d(
                &im,
                &w,
                &ConvOptions::new().stride(3).padding(2).dilation(1).output_padding(2),
            )
        },
    );
    case(
        r#"conv_transpose1d(&i1,&w1,&ConvOptions::new().stride(3).padding(2).dilation(1).output_padding(2))"#,
        &|| {
            conv_transpose1d(
                &i1,
                &w1,
                &ConvOptions::new().stride(3).padding(2).dilation(1).output_padding(2),
            )
        },
    );
    case(
        r#"conv_transpose2d(&im,&w,&ConvOptions::new().stride(2).padding(2).dilation(1).output_padding(1))"#,
        &|| {
            conv_transpose2d(
                &im,
                &w,
                &ConvOptions::new().stride(2).padding(2).dilation(1).output_padding(1),
            )
        },
    );
    case(
        r#"conv_transpose1d(&i1,&w1,&ConvOptions::new().stride(2).padding(2).dilation(1).output_padding(1))"#,
        &|| {
            conv_transpose1d(
                &i1,
                &w1,
                &ConvOptions::new().stride(2).padding(2).dilation(1).output_padding(1),
            )
        },
    );
    case(r#"conv_transpose2d(&im,&wg,&ConvOptions::new().stride(2).groups(2))"#, &|| {
        conv_transpose2d(&im, &wg, &ConvOptions::new().stride(2).groups(2))
    });
    case(r#"conv_transpose3d(&i3,&w3,&ConvOptions::new().stride(2))"#, &|| {
        conv_transpose3d(&i3, &w3, &ConvOptions::new().stride(2))
    });
    case(r#"max_pool(&im,&PoolOptions::new(3).stride(2).padding(1))"#, &|| {
        max_pool(&im, &PoolOptions::new(3).stride(2).padding(1))
    });
    case(r#"max_pool(&im,&PoolOptions::new(2))"#, &|| max_pool(&im, &PoolOptions::new(2)));
    case(r#"avg_pool(&im,&PoolOptions::new(3).stride(2).padding(1))"#, &|| {
        avg_pool(&im, &PoolOptions::new(3).stride(2).padding(1))
    });
    case(r#"avg_pool(&i1,&PoolOptions::new([2]))"#, &|| avg_pool(&i1, &PoolOptions::new([2])));
    case(r#"relu(&x)"#, &|| relu(&x));
    case(r#"relu6(&x)"#, &|| relu6(&x));
    case(r#"gelu(&x)"#, &|| gelu(&x));
    case(r#"gelu_approx(&x)"#, &|| gelu_approx(&x));
    case(r#"silu(&x)"#, &|| silu(&x));
    case(r#"softplus(&x)"#, &|| softplus(&x));
    case(r#"softsign(&x)"#, &|| softsign(&x));
    case(r#"hard_swish(&x)"#, &|| hard_swish(&x));
    case(r#"mish(&x)"#, &|| mish(&x));
    case(r#"log_sigmoid(&x)"#, &|| log_sigmoid(&x));
    case(r#"selu(&x)"#, &|| selu(&x));
    case(r#"elu(&x,0.7)"#, &|| elu(&x, 0.7));
    case(r#"celu(&x,0.7)"#, &|| celu(&x, 0.7));
    case(r#"leaky_relu(&x,0.1)"#, &|| leaky_relu(&x, 0.1));
    case(r#"glu(&x,-1)"#, &|| glu(&x, -1));
    case(r#"step(&x,0.5)"#, &|| step(&x, 0.5));
    case(r#"hard_tanh(&x)"#, &|| hard_tanh(&x));
    case(r#"hard_shrink(&x,0.5)"#, &|| hard_shrink(&x, 0.5));
    case(r#"softshrink(&x,0.5)"#, &|| softshrink(&x, 0.5));
    case(r#"prelu(&x,&Array::scalar(0.25f32))"#, &|| prelu(&x, &Array::scalar(0.25f32)));
    case(r#"softmin(&x,-1)"#, &|| softmin(&x, -1));
    case(r#"layer_norm(&t3,Some(&v),Some(&v),1e-5)"#, &|| {
        layer_norm(&t3, Some(&v), Some(&v), 1e-5)
    });
    case(r#"rms_norm(&t3,Some(&v),1e-5)"#, &|| rms_norm(&t3, Some(&v), 1e-5));
    case(r#"norm(&t3,[0,1],false)"#, &|| norm(&t3, [0, 1], false));
    case(r#"random::uniform(-3.0,5.0,[16],DType::F32,k)"#, &|| {
        random::uniform(-3.0, 5.0, [16], DType::F32, k)
    });
    case(r#"random::uniform(0,1,[16],DType::F32,k)"#, &|| {
        random::uniform(0, 1, [16], DType::F32, k)
    });
    case(r#"random::normal([16],DType::F32,k)"#, &|| random::normal([16], DType::F32, k));
    case(r#"random::gumbel([16],DType::F32,k)"#, &|| random::gumbel([16], DType::F32, k));
    case(r#"random::laplace([16],DType::F32,k)"#, &|| random::laplace([16], DType::F32, k));
    case(r#"random::truncated_normal(-1.0,2.0,[16],DType::F32,k)"#, &|| {
        random::truncated_normal(-1.0, 2.0, [16], DType::F32, k)
    });
    case(r#"random::uniform(-3.0,5.0,[16],DType::F16,k)"#, &|| {
        random::uniform(-3.0, 5.0, [16], DType::F16, k)
    });
    case(r#"random::uniform(0,1,[16],DType::F16,k)"#, &|| {
        random::uniform(0, 1, [16], DType::F16, k)
    });
    case(r#"random::normal([16],DType::F16,k)"#, &|| random::normal([16], DType::F16, k));
    case(r#"random::gumbel([16],DType::F16,k)"#, &|| random::gumbel([16], DType::F16, k));
    case(r#"random::laplace([16],DType::F16,k)"#, &|| random::laplace([16], DType::F16, k));
    case(r#"random::truncated_normal(-1.0,2.0,[16],DType::F16,k)"#, &|| {
        random::truncated_normal(-1.0, 2.0, [16], DType::F16, k)
    });
    case(r#"random::uniform(-3.0,5.0,[16],DType::BF16,k)"#, &|| {
        random::uniform(-3.0, 5.0, [16], DType::BF16, k)
    });
    case(r#"random::uniform(0,1,[16],DType::BF16,k)"#, &|| {
        random::uniform(0, 1, [16], DType::BF16, k)
    });
    case(r#"random::normal([16],DType::BF16,k)"#, &|| random::normal([16], DType::BF16, k));
    case(r#"random::gumbel([16],DType::BF16,k)"#, &|| random::gumbel([16], DType::BF16, k));
    case(r#"random::laplace([16],DType::BF16,k)"#, &|| random::laplace([16], DType::BF16, k));
    case(r#"random::truncated_normal(-1.0,2.0,[16],DType::BF16,k)"#, &|| {
        random::truncated_normal(-1.0, 2.0, [16], DType::BF16, k)
    });
    case(r#"random::uniform(&v,&add(&v,2)?,[3,4],DType::F32,k)"#, &|| {
        random::uniform(&v, &add(&v, 2)?, [3, 4], DType::F32, k)
    });
    case(r#"random::split(k,5)"#, &|| random::split(k, 5));
    case(r#"random::bernoulli(0.3,[16],k)"#, &|| random::bernoulli(0.3, [16], k));
    case(r#"random::bernoulli(&u,[3,4],k)"#, &|| random::bernoulli(&u, [3, 4], k));
    case(r#"random::randint(-5,20,[16],DType::I32,k)"#, &|| {
        random::randint(-5, 20, [16], DType::I32, k)
    });
    case(r#"random::randint(0,200,[16],DType::U8,k)"#, &|| {
        random::randint(0, 200, [16], DType::U8, k)
    });
    case(r#"random::permutation(40,k)"#, &|| random::permutation(40, k));
    case(r#"random::shuffle(&t3,2,k)"#, &|| random::shuffle(&t3, 2, k));
    case(r#"random::categorical(&x,-1,None,k)"#, &|| random::categorical(&x, -1, None, k));
    case(r#"random::categorical(&x,0,Some(7),k)"#, &|| random::categorical(&x, 0, Some(7), k));
    case(
        r#"{random::seed(3);random::uniform(0,1,[3],DType::F32,None)?;random::uniform(0,1,[5],DType::F32,None)}"#,
        &|| {
            random::seed(3);
            random::uniform(0, 1, [3], DType::F32, None)?;
            random::uniform(0, 1, [5], DType::F32, None)
        },
    );
    Ok(())
}
