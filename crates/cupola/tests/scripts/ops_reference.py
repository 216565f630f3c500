"""Writes what MLX computes for tests/ops: each case is a Rust expression, its Python twin, and how
far they may be apart.

Run with Python 3.11, mlx 0.32 and numpy, in this directory, then format the cases:
python ops_reference.py && rustfmt --edition 2024 ../ops/cases.rs

Where MLX differs on purpose (docs of the function), a case is left out: the sign of NaN is 0 there.
"""

import mlx.core as mx
import mlx.nn as nn
import numpy as np
mx.set_default_device(mx.cpu)

def vals(n, k):
    """Numbers of few digits, in no order, with signs and repeats."""
    return ((np.arange(n) * 37 * k + k * 5) % 23 - 11) / 4

def mk(n, shape, k=1, dt=np.float32):
    return vals(n, k).astype(dt).reshape(shape)


x = mk(12, (3, 4))
y = mk(12, (3, 4), 2)
v = mk(4, (4,), 3)
t3 = mk(24, (2, 3, 4), 2)
m = mk(20, (4, 5), 3)
b3 = mk(40, (2, 4, 5), 4)
xi = (vals(12, 1) * 4).astype(np.int32).reshape(3, 4)
yi = (vals(12, 2) * 4).astype(np.int32).reshape(3, 4)
u = (np.abs(vals(12, 1)) / 3).astype(np.float32).reshape(3, 4)
im = mk(2 * 6 * 5 * 4, (2, 6, 5, 4), 3)
w = mk(6 * 3 * 3 * 4, (6, 3, 3, 4), 5)
wg = mk(6 * 3 * 3 * 2, (6, 3, 3, 2), 5)
i1 = mk(2 * 7 * 4, (2, 7, 4), 3)
w1 = mk(6 * 3 * 4, (6, 3, 4), 5)
i3 = mk(3 * 3 * 4 * 2, (1, 3, 3, 4, 2), 3)
w3 = mk(3 * 2 * 2 * 2 * 2, (3, 2, 2, 2, 2), 5)
sp = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -2.5, 1.5, 2.5, 1e-08], dtype=np.float32)
idx = np.array([2, -1, 0], dtype=np.int32)
ix2 = np.array([[1], [0]], dtype=np.int32)
iu = np.array([3, 0], dtype=np.uint32)
z = (mk(12, (3, 4)) + 1j * mk(12, (3, 4), 2)).astype(np.complex64)
sp_less = mk(9, (9,), 7)
iu_in = np.array([1, 0], dtype=np.uint32)
big = mk(40 * 36, (40, 36), 3)
mask = np.array([[1, 0], [0, 1]], dtype=np.int32)
weight = np.array([[0.5, 2], [0, 1.5]], dtype=np.float32)
flat = mk(2 * 128, (2, 128), 5)
iu_f = mk(4, (2, 2), 5)
aq = mk(2 * 4 * 3 * 4, (2, 4, 3, 4), 3)
ak = mk(2 * 2 * 5 * 4, (2, 2, 5, 4), 5)
av = mk(2 * 2 * 5 * 2, (2, 2, 5, 2), 4)
amask = mk(4 * 3 * 5, (4, 3, 5), 2)
names = 'x y v t3 m b3 xi yi u im w wg i1 w1 i3 w3 sp idx ix2 iu sp_less iu_in big mask weight flat iu_f aq ak av amask z'.split()
CASES = []

def c(r, p, tol=2e-06):
    """A case: Rust, Python, tolerance."""
    CASES.append((r, p, tol))


for f in 'abs negative sign square exp expm1 sin cos tan arctan sinh cosh tanh arcsinh sigmoid erf floor ceil degrees radians isnan isinf isfinite isposinf isneginf'.split():
    c(f'{f}(&x)', f'mx.{f}(x)', 4e-06)
    if f != 'sign':
        c(f'{f}(&sp)', f'mx.{f}(sp)', 4e-06)
for f in 'sqrt rsqrt log log2 log10 log1p arcsin arccos arctanh erfinv reciprocal'.split():
    c(f'{f}(&u)', f'mx.{f}(u)', 4e-06)
c('arccosh(&add(&u,1)?)', 'mx.arccosh(u+1)', 1e-05)
for f in 'sqrt rsqrt log log2 log10 log1p exp sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh sign square negative conjugate real imag abs reciprocal'.split():
    c(f'{f}(&z)', f'mx.{f}(z)', 3e-05)
c('power(&z,2.0)', 'mx.power(z,2.0)', 3e-05)
c('power(&z,&z)', 'mx.power(z,z)', 3e-05)
c('multiply(&z,&z)', 'z*z', 1e-05)
c('divide(&z,&y)', 'z/y', 1e-05)
c('round(&sp,0)', 'mx.round(sp)')
c('round(&x,1)', 'mx.round(x,1)')
c('round(&xi,-1)', 'mx.round(xi,-1)')
c('round(&z,0)', 'mx.round(z)')
c('nan_to_num(&sp,Replacements::default())', 'mx.nan_to_num(sp)')
for f in 'add subtract multiply maximum minimum logaddexp arctan2'.split():
    c(f'{f}(&x,&y)', f'mx.{f}(x,y)', 4e-06)
    c(f'{f}(&t3,&v)', f'mx.{f}(t3,v)', 4e-06)
    c(f'{f}(&xi,1.5)', f'mx.{f}(xi,1.5)', 4e-06)
c('divide(&x,&add(&square(&y)?,1)?)', 'x/(y*y+1)')
c('divide(&xi,3)', 'xi/3')
c('divide(2,&xi)', '2/xi')
c('floor_divide(&xi,3)', 'xi//3')
c('floor_divide(&x,0.75)', 'x//0.75')
c('remainder(&xi,3)', 'xi%3')
c('remainder(&xi,-3)', 'xi%-3')
c('remainder(&x,0.75)', 'x%0.75', 1e-05)
c('power(&abs(&x)?,&y)', 'mx.abs(x)**y', 1e-05)
c('power(&xi,2)', 'xi**2')
c('power(&x,3)', 'x**3', 1e-05)
for f in 'bitwise_and bitwise_or bitwise_xor'.split():
    c(f'{f}(&xi,&yi)', f'mx.{f}(xi,yi)')
c('left_shift(&yi,2)', 'yi<<2')
c('right_shift(&yi,1)', 'yi>>1')
c('bitwise_invert(&xi)', '~xi')
for f in 'equal not_equal less less_equal greater greater_equal logical_and logical_or'.split():
    c(f'{f}(&xi,&yi)', f'mx.{f}(xi,yi)')
    c(f'{f}(&sp,0)', f'mx.{f}(sp,0)')
c('logical_not(&xi)', 'mx.logical_not(xi)')
c('isclose(&x,&y,Tolerance::default())', 'mx.isclose(x,y)')
c('isclose(&sp,&sp,Tolerance{equal_nan:true,..Default::default()})', 'mx.isclose(sp,sp,equal_nan=True)')
c('clip(&x,-1,1.5)', 'mx.clip(x,-1,1.5)')
c('where_(&greater(&x,0)?,&x,&v)', 'mx.where(x>0,x,v)')
c('where_(&xi,1,2.5)', 'mx.where(xi,1,2.5)')
for f in 'sum prod max min mean'.split():
    for ax, pa in [('()', 'None'), ('0', '0'), ('-1', '-1'), ('[0,2]', '(0,2)')]:
        c(f'{f}(&t3,{ax},false)', f'mx.{f}(t3,axis={pa})', 1e-05)
    c(f'{f}(&xi,1,true)', f'mx.{f}(xi,axis=1,keepdims=True)')
for f in 'var std'.split():
    for ax, pa in [('()', 'None'), ('1', '1')]:
        for d in (0, 1):
            c(f'{f}(&t3,{ax},false,{d})', f'mx.{f}(t3,axis={pa},ddof={d})', 1e-05)
c('all(&xi,1,false)', 'mx.all(xi,axis=1)')
c('any(&xi,0,true)', 'mx.any(xi,axis=0,keepdims=True)')
c('median(&t3,1,false)', 'mx.median(t3,axis=1)')
c('median(&t3,[0,2],true)', 'mx.median(t3,axis=(0,2),keepdims=True)')
c('median(&xi,(),false)', 'mx.median(xi)')
for f in 'argmax argmin'.split():
    c(f'{f}(&t3,1,false)', f'mx.{f}(t3,axis=1)')
    c(f'{f}(&t3,(),true)', f'mx.{f}(t3,keepdims=True)')
for ax in ('-1', '0'):
    c(f'sort(&t3,{ax})', f'mx.sort(t3,axis={ax})')
    c(f'take_along_axis(&t3,&argsort(&t3,{ax})?,{ax})', f'mx.sort(t3,axis={ax})')
c('sort(&t3,())', 'mx.sort(t3,axis=None)')
c('topk(&t3,2,1)', 'mx.sort(mx.topk(t3,2,axis=1),axis=1)')
for f in 'softmax'.split():
    c('softmax(&t3,-1)', 'mx.softmax(t3,axis=-1)')
    c('softmax(&t3,[0,1])', 'mx.softmax(t3,axis=(0,1))')
c('logsumexp(&t3,1,false)', 'mx.logsumexp(t3,axis=1)', 4e-06)
c('logsumexp(&t3,(),true)', 'mx.logsumexp(t3,keepdims=True)', 4e-06)
c('log_softmax(&t3,-1)', 'nn.log_softmax(t3,axis=-1)', 5e-06)
c('logsumexp(&full([2,3],f64::NEG_INFINITY,DType::F32)?,1,false)', 'mx.logsumexp(mx.full((2,3),-mx.inf),axis=1)')
c('reshape(&t3,[4,-1])', 't3.reshape(4,-1)')
c('flatten(&t3,1,-1)', 'mx.flatten(t3,1,-1)')
c('unflatten(&t3,-1,[2,-1])', 'mx.unflatten(t3,-1,(2,-1))')
c('transpose(&t3,())', 'mx.transpose(t3)')
c('transpose(&t3,[1,0,-1])', 'mx.transpose(t3,(1,0,-1))')
c('swapaxes(&t3,0,-1)', 'mx.swapaxes(t3,0,-1)')
c('moveaxis(&t3,0,1)', 'mx.moveaxis(t3,0,1)')
c('concatenate(&[&x,&xi],0)', 'mx.concatenate([x,xi],0)')
c('concatenate(&[&x,&y],())', 'mx.concatenate([x.flatten(),y.flatten()])')
c('stack(&[&x,&y],-1)', 'mx.stack([x,y],-1)')
c('Ok(split(&t3,[1,2],1)?.remove(1))', 'mx.split(t3,[1,2],1)[1]')
c('Ok(split(&t3,2,2)?.remove(1))', 'mx.split(t3,2,2)[1]')
c('tile(&x,[2,1,3])', 'mx.tile(x,(2,1,3))')
c('tile(&t3,[2])', 'mx.tile(t3,(2,))')
c('repeat(&x,3,1)', 'mx.repeat(x,3,1)')
c('repeat(&x,2,())', 'mx.repeat(x,2)')
c('roll(&x,5,1)', 'mx.roll(x,5,1)')
c('roll(&x,-3,())', 'mx.roll(x,-3)')
c('roll(&x,[1,-2],[0,1])', 'mx.roll(x,(1,-2),(0,1))')
c('flip(&x,1)', 'x[:,::-1]')
c('pad(&x,[(1,0),(2,3)],7.5)', 'mx.pad(x,[(1,0),(2,3)],constant_values=7.5)')
c('pad(&x,(1,2),PadMode::Edge)', "mx.pad(x,(1,2),mode='edge')")
for k in (-2, -1, 0, 1, 2, 3, 4):
    c(f'diagonal(&t3,{k},1,2)', f'mx.diagonal(t3,{k},1,2)')
    c(f'diag(&v,{k})', f'mx.diag(v,{k})')
    c(f'eye_at(3,4,{k},DType::F32)', f'mx.eye(3,4,{k})')
    c(f'tri(3,4,{k},DType::F32)', f'mx.tri(3,4,{k})')
    c(f'tril(&t3,{k})', f'mx.tril(t3,{k})')
    c(f'triu(&t3,{k})', f'mx.triu(t3,{k})')
c('trace(&x,1,0,1)', 'mx.trace(x,1)')
c('arange(1,10,3)', 'mx.arange(1,10,3)')
c('arange(1.0,2.0,0.25)', 'mx.arange(1.0,2.0,0.25)')
c('arange(5,0,-2)', 'mx.arange(5,0,-2)')
c('linspace(-1.0,2.0,7,DType::F32)', 'mx.linspace(-1,2,7)')
c('Ok(meshgrid(&[&v,&idx],false)?.remove(0))', 'mx.meshgrid(v,idx)[0]')
c('Ok(meshgrid(&[&v,&idx],true)?.remove(1))', "mx.meshgrid(v,idx,indexing='ij')[1]")
c('take(&x,&idx,1)', 'mx.take(x,idx,1)')
c('take(&t3,&ix2,2)', 'mx.take(t3,ix2,2)')
c('take(&x,&idx,())', 'mx.take(x,idx)')
c('take(&x,-1,0)', 'x[-1]')
c('take(&t3,&iu,2)', 'mx.take(t3,iu,2)')
c('take_along_axis(&x,&reshape(&idx,[3,1])?,1)', 'mx.take_along_axis(x,idx.reshape(3,1),1)')
c('put_along_axis(&x,&reshape(&idx,[3,1])?,9.5,1)', 'mx.put_along_axis(x,idx.reshape(3,1),mx.array(9.5),1)')

def ix(r, p):
    c(f'index(&t3,&[{r}])', f't3[{p}]')
    c(f'at_add(&t3,&[{r}],2.5)', f't3.at[{p}].add(2.5)')
    c(f'at_set(&t3,&[{r}],&index(&multiply(&t3,2)?,&[{r}])?)', f"setix(t3,'{p}')")
    c(f'at_max(&t3,&[{r}],0.5)', f't3.at[{p}].maximum(0.5)')
    c(f'at_multiply(&t3,&[{r}],2)', f't3.at[{p}].multiply(2.0)')
    c(f'at_min(&t3,&[{r}],0.5)', f't3.at[{p}].minimum(0.5)')

def setix(a, p):
    n = np.array(a).copy()
    src = (n * 2).copy()
    exec(f'n[{p}]=src[{p}]', {'n': n, 'src': src, 'idx': np.array(idx), 'ix2': np.array(ix2), 'iu': np.array(iu)})
    return mx.array(n)


ix('S::at(1)', '1')
ix('S::at(-1),S::range(1..)', '-1,1:')
ix('S::ellipsis(),S::at(2)', '...,2')
ix('S::range(..),S::range(..).step(-1)', 'slice(None),slice(None,None,-1)')
ix('S::range(..),S::range(..),S::range(..).step(-2)', 'slice(None),slice(None),slice(None,None,-2)')
ix('S::range(..),S::range(0..2),S::range(1..).step(2)', 'slice(None),slice(0,2),slice(1,None,2)')
ix('S::range(..),S::array(&idx)', 'slice(None),idx')
ix('S::range(..),S::range(1..3),S::array(&iu)', 'slice(None),slice(1,3),iu')
ix('S::array(&ix2),S::array(&idx)', 'ix2,idx')
ix('S::array(&ix2),S::range(..),S::array(&iu)', 'ix2,slice(None),iu')
ix('S::at(1),S::range(..),S::array(&iu)', '1,slice(None),iu')
ix('S::range(..),S::range(..).step(-1),S::array(&iu)', 'slice(None),slice(None,None,-1),iu')
c('index(&t3,&[S::new_axis(),S::at(0),S::new_axis(),S::array(&idx)])', 't3[None,0,None,idx]')
c('matmul(&x,&m)', 'x@m', 1e-05)
c('matmul(&t3,&m)', 't3@m', 1e-05)
c('matmul(&t3,&b3)', 't3@b3', 1e-05)
c('matmul(&v,&m)', 'v@m', 1e-05)
c('matmul(&x,&v)', 'x@v', 1e-05)
c('matmul(&v,&v)', 'v@v', 1e-05)
c('matmul(&x,&b3)', 'x@b3', 1e-05)
c('matmul(&v,&b3)', 'v@b3', 1e-05)
c('matmul(&t3,&v)', 't3@v', 1e-05)
c('matmul(&z,&transpose(&z,())?)', 'z@z.T', 1e-05)
c('inner(&t3,&x)', 'mx.inner(t3,x)', 1e-05)
c('outer(&v,&idx)', 'mx.outer(v,idx)')
c('tensordot(&t3,&b3,([0,2],[0,1]))', 'mx.tensordot(t3,b3,[[0,2],[0,1]])', 1e-05)
c('tensordot(&t3,&m,1)', 'mx.tensordot(t3,m,1)', 1e-05)
c('kron(&x,&v)', 'mx.kron(x,v)')
c('kron(&v,&x)', 'mx.kron(v,x)')
c('addmm(&transpose(&index(&m,&[S::at(0)])?,())?,&x,&m,0.5,2.0)', 'mx.addmm(m[0],x,m,0.5,2.0)', 1e-05)
c('vecdot(&x,&y,-1)', '(x*y).sum(-1)', 1e-05)
for e, o in [('ij,jk->ik', 'x,m'), ('ij,jk', 'x,m'), ('bij,bjk->bik', 't3,b3'), ('bij,bjk->ki', 't3,b3'), ('ij->ji', 'x'), ('ij->', 'x'), ('ij,ij->i', 'x,y'), ('i,j->ij', 'v,v'), ('bij,jk,k->bi', 't3,m,m[0]'), ('...ij,...jk->...ik', 't3,b3'), ('...i->...', 't3'), ('i...,i...->...', 'x,y'), ('ij,kj->ikj', 'x,y'), ('bij,ij->b', 't3,x'), ('ab,cd->abcd', 'x,m')]:
    rs = ['&index(&m,&[S::at(0)])?' if q == 'm[0]' else '&' + q for q in o.split(',')]
    c(f'''einsum("{e}",&[{','.join(rs)}])''', f"einsum('{e}',{o})", 1e-05)
c('einsum("iij->j",&[&reshape(&index(&t3,&[S::range(..),S::range(0..2)])?,[2,2,4])?])', "einsum('iij->j',t3[:,:2])", 1e-05)
c('einsum("ii->i",&[&index(&m,&[S::range(..),S::range(0..4)])?])', "einsum('ii->i',m[:,:4])", 1e-05)
c('einsum("ij,jk,kl->il",&[&x,&m,&transpose(&m,())?])', "einsum('ij,jk,kl->il',x,m,m.T)", 1e-05)
c('einsum("bij,jk,lk,bl->i",&[&t3,&m,&m,&index(&y,&[S::range(..2)])?])', "einsum('bij,jk,lk,bl->i',t3,m,m,y[:2])", 2e-05)
c('einsum("i,j,k->kji",&[&v,&v,&v])', "einsum('i,j,k->kji',v,v,v)", 1e-05)
c('einsum("...i,ij,j->...",&[&t3,&m,&index(&m,&[S::at(0)])?])', "einsum('...i,ij,j->...',t3,m,m[0])", 1e-05)

def einsum(e, *a):
    return mx.array(np.einsum(e, *[np.array(q) for q in a]).astype(np.float32))


O = 'ConvOptions::new()'
c(f'conv2d(&im,&w,&{O})', 'mx.conv2d(im,w)', 1e-05)
c(f'conv2d(&im,&w,&{O}.stride([2,1]).padding([1,0]).dilation([1,2]))', 'mx.conv2d(im,w,(2,1),(1,0),(1,2))', 1e-05)
c(f'conv2d(&im,&wg,&{O}.groups(2).padding(1))', 'mx.conv2d(im,wg,1,1,1,2)', 1e-05)
c(f'conv1d(&i1,&w1,&{O}.stride(2).padding(1))', 'mx.conv1d(i1,w1,2,1)', 1e-05)
c(f'conv3d(&i3,&w3,&{O}.padding(1))', 'mx.conv3d(i3,w3,1,1)', 1e-05)
c(f'conv_general(&im,&w,&{O}.input_dilation(2).flip(true).padding(2))', 'mx.conv_general(im,w,1,2,1,2,1,True)', 1e-05)
for s, p, d, op in [(1, 0, 1, 0), (2, 1, 1, 1), (2, 0, 2, 0), (3, 2, 1, 2), (2, 2, 1, 1)]:
    c(f'conv_transpose2d(&im,&w,&{O}.stride({s}).padding({p}).dilation({d}).output_padding({op}))', f'mx.conv_transpose2d(im,w,{s},{p},{d},{op})', 1e-05)
    c(f'conv_transpose1d(&i1,&w1,&{O}.stride({s}).padding({p}).dilation({d}).output_padding({op}))', f'mx.conv_transpose1d(i1,w1,{s},{p},{d},{op})', 1e-05)
c(f'conv_transpose2d(&im,&wg,&{O}.stride(2).groups(2))', 'mx.conv_transpose2d(im,wg,2,0,1,0,2)', 1e-05)
c(f'conv_transpose3d(&i3,&w3,&{O}.stride(2))', 'mx.conv_transpose3d(i3,w3,2)', 1e-05)
c('max_pool(&im,&PoolOptions::new(3).stride(2).padding(1))', 'nn.MaxPool2d(3,2,1)(im)')
c('max_pool(&im,&PoolOptions::new(2))', 'nn.MaxPool2d(2)(im)')
c('avg_pool(&im,&PoolOptions::new(3).stride(2).padding(1))', 'nn.AvgPool2d(3,2,1)(im)', 1e-05)
c('avg_pool(&i1,&PoolOptions::new([2]))', 'nn.AvgPool1d(2)(i1)', 1e-05)
for r, p in [('relu', 'nn.relu'), ('relu6', 'nn.relu6'), ('gelu', 'nn.gelu'), ('gelu_approx', 'nn.gelu_approx'), ('silu', 'nn.silu'), ('softplus', 'nn.softplus'), ('softsign', 'nn.softsign'), ('hard_swish', 'nn.hardswish'), ('mish', 'nn.mish'), ('log_sigmoid', 'nn.log_sigmoid'), ('selu', 'nn.selu')]:
    c(f'{r}(&x)', f'{p}(x)', 4e-06)
c('elu(&x,0.7)', 'nn.elu(x,0.7)')
c('celu(&x,0.7)', 'nn.celu(x,0.7)')
c('leaky_relu(&x,0.1)', 'nn.leaky_relu(x,0.1)')
c('glu(&x,-1)', 'nn.glu(x)')
c('step(&x,0.5)', 'nn.step(x,0.5)')
c('hard_tanh(&x)', 'nn.hard_tanh(x)')
c('hard_shrink(&x,0.5)', 'nn.hard_shrink(x)')
c('softshrink(&x,0.5)', 'nn.softshrink(x)')
c('prelu(&x,&Array::scalar(0.25f32))', 'nn.prelu(x,mx.array(0.25))')
c('softmin(&x,-1)', 'nn.softmin(x,axis=-1)')
c('layer_norm(&t3,Some(&v),Some(&v),1e-5)', 'mx.fast.layer_norm(t3,v,v,1e-5)', 5e-06)
c('rms_norm(&t3,Some(&v),1e-5)', 'mx.fast.rms_norm(t3,v,1e-5)', 5e-06)
c('norm(&t3,[0,1],false)', 'mx.sqrt((t3*t3).sum((0,1)))', 1e-05)
for dt, md in [('F32', 'float32'), ('F16', 'float16'), ('BF16', 'bfloat16')]:
    for r, p in [('random::uniform(-3.0,5.0,[16],DType::%s,K)', 'mx.random.uniform(-3,5,(16,),dtype=mx.%s,key=k)'), ('random::uniform(0,1,[16],DType::%s,K)', 'mx.random.uniform(shape=(16,),dtype=mx.%s,key=k)'), ('random::normal([16],DType::%s,K)', 'mx.random.normal((16,),dtype=mx.%s,key=k)'), ('random::gumbel([16],DType::%s,K)', 'mx.random.gumbel((16,),dtype=mx.%s,key=k)'), ('random::laplace([16],DType::%s,K)', 'mx.random.laplace((16,),dtype=mx.%s,key=k)'), ('random::truncated_normal(-1.0,2.0,[16],DType::%s,K)', 'mx.random.truncated_normal(mx.array(-1.0),mx.array(2.0),(16,),dtype=mx.%s,key=k)')]:
        c(r % dt, p % md, 0 if 'uniform' in r or dt != 'F32' else 2e-06)
c('random::uniform(&v,&add(&v,2)?,[3,4],DType::F32,K)', 'mx.random.uniform(v,v+2,(3,4),key=k)', 0)
c('random::split(K,5)', 'mx.random.split(k,5)')
c('random::bernoulli(0.3,[16],K)', 'mx.random.bernoulli(0.3,(16,),key=k)')
c('random::bernoulli(&u,[3,4],K)', 'mx.random.bernoulli(u,(3,4),key=k)')
c('random::randint(-5,20,[16],DType::I32,K)', 'mx.random.randint(-5,20,(16,),key=k)')
c('random::randint(0,200,[16],DType::U8,K)', 'mx.random.randint(0,200,(16,),dtype=mx.uint8,key=k)')
c('random::permutation(40,K)', 'mx.random.permutation(40,key=k)')
c('random::shuffle(&t3,2,K)', 'mx.random.permutation(t3,axis=2,key=k)')
c('random::categorical(&x,-1,None,K)', 'mx.random.categorical(x,key=k)')
c('random::categorical(&x,0,Some(7),K)', 'mx.random.categorical(x,axis=0,num_samples=7,key=k)')
c('{random::seed(3);random::uniform(0,1,[3],DType::F32,None)?;random::uniform(0,1,[5],DType::F32,None)}', 'seq()', 0)

def seq():
    mx.random.seed(3)
    mx.random.uniform(shape=(3,))
    return mx.random.uniform(shape=(5,))

# Order, search and scans.
for f in 'cumsum cumprod cummax cummin logcumsumexp'.split():
    tol = 1e-05
    for ax, pa in [('()', 'None'), ('0', '0'), ('1', '1'), ('-1', '-1')]:
        c(f'{f}(&t3,{ax},ScanOptions::default())', f'mx.{f}(t3,axis={pa})', tol)
    for o, q in [('reverse:true,exclusive:false', 'reverse=True'), ('reverse:false,exclusive:true', 'inclusive=False'), ('reverse:true,exclusive:true', 'reverse=True,inclusive=False')]:
        c(f'{f}(&t3,1,ScanOptions{{{o}}})', f'mx.{f}(t3,axis=1,{q})', tol)
    c(f'{f}(&xi,1,ScanOptions::default())', f'mx.{f}(xi,axis=1)', tol)
    c(f'{f}(&greater(&xi,-9)?,1,ScanOptions::default())', f'mx.{f}(xi>-9,axis=1)', tol)
    c(f'{f}(&astype(&xi,DType::U8)?,0,ScanOptions{{reverse:false,exclusive:true}})', f'mx.{f}(xi.astype(mx.uint8),axis=0,inclusive=False)', tol)
c('cumsum(&z,1,ScanOptions::default())', 'mx.cumsum(z,axis=1)', 1e-05)
c('cumprod(&z,0,ScanOptions::default())', 'mx.cumprod(z,axis=0)', 1e-05)
c('cummax(&sp,0,ScanOptions::default())', 'mx.cummax(sp,axis=0)')
c('cummin(&sp,0,ScanOptions::default())', 'mx.cummin(sp,axis=0)')
for k in (0, 2, -1):
    c(f'sort(&partition(&t3,{k},1)?,1)', f'mx.sort(mx.partition(t3,{k},axis=1),axis=1)')
c('take(&partition(&t3,1,-1)?,1,2)', 'mx.partition(t3,1,axis=-1)[...,1]')
c('take(&take_along_axis(&t3,&argpartition(&t3,2,0-1)?,-1)?,2,2)', 'mx.partition(t3,2,axis=-1)[...,2]')
c('take(&partition(&t3,7,())?,7,0)', 'mx.partition(t3,7,axis=None)[7]')
c('topk(&t3,3,())', 'mx.sort(mx.topk(t3,3,axis=None))')
for s in ('Left', 'Right'):
    c(f'searchsorted(&sort(&x,())?,&y,Side::{s})', f"mx.searchsorted(mx.sort(x,axis=None),y,side='{s.lower()}')")
    c(f'searchsorted(&sort(&sp,0)?,&sp,Side::{s})', f"mx.searchsorted(mx.sort(sp),sp,side='{s.lower()}')")
    c(f'searchsorted(&sort(&idx,0)?,&v,Side::{s})', f"mx.searchsorted(mx.sort(idx),v,side='{s.lower()}')")
    c(f'searchsorted(&zeros(0,DType::F32)?,&v,Side::{s})', f"mx.searchsorted(mx.zeros((0,)),v,side='{s.lower()}')")
for x_, s in [('xi', 5), ('xi', 20), ('t3', 30), ('sp', 14), ('idx', 3), ('xi', 0)]:
    for i, part in enumerate(('values', 'index', 'inverse', 'counts')):
        c(f'Ok(unique(&{x_},{s},None)?.{part})', f'mx.unique({x_},{s},True,True,True)[{i}]')
c('Ok(unique(&xi,14,Some(7.into()))?.values)', 'mx.unique(xi,14,fill_value=7)')
c('Ok(unique(&greater(&xi,0)?,3,None)?.counts)', 'mx.unique(xi>0,3,False,False,True)[1]')

# Reductions and elementwise.
c('count_nonzero(&x,(),false)', 'mx.count_nonzero(x)')
c('count_nonzero(&t3,[0,2],true)', 'mx.count_nonzero(t3,axis=(0,2),keepdims=True)')
c('count_nonzero(&sp,0,false)', 'mx.count_nonzero(sp,axis=0)')
c('Ok(minmax(&t3,1,true)?.0)', 'mx.minmax(t3,1,keepdims=True)[0]')
c('Ok(minmax(&sp,(),false)?.1)', 'mx.minmax(sp)[1]')
for a in ('x', 'sp', 'xi'):
    c(f'trunc(&{a})', f'mx.trunc({a})')
    c(f'positive(&{a})', f'mx.positive({a})')
c('matrix_transpose(&t3)', 'mx.matrix_transpose(t3)')
c('put_along_axis(&xi,&idx,&idx,())', 'mx.put_along_axis(xi,idx,idx,None)')

# Sequences.
for n, ax in [(1, -1), (2, 0), (0, 1), (9, 1)]:
    c(f'diff(&t3,{n},{ax})', f'mx.diff(t3,{n},axis={ax})')
c('diff(&greater(&xi,0)?,1,1)', 'mx.diff(xi>0,1,axis=1)')
c('diff(&astype(&xi,DType::U8)?,1,0)', 'mx.diff(xi.astype(mx.uint8),axis=0)')
for mode in ('Full', 'Same', 'Valid'):
    c(f'convolve(&sp_less,&v,ConvolveMode::{mode})', f"mx.convolve(sp_less,v,mode='{mode.lower()}')", 1e-05)
    c(f'convolve(&index(&v,&[S::range(..3)])?,&sp_less,ConvolveMode::{mode})', f"mx.convolve(v[:3],sp_less,mode='{mode.lower()}')", 1e-05)
for f in 'bartlett blackman hamming hanning'.split():
    for n in (0, 1, 2, 7, 12):
        c(f'{f}({n})', f'mx.{f}({n})', 1e-06)
for n in (1, 4, 5):
    c(f'fftfreq({n},0.3)', f'mx.fft.fftfreq({n},0.3)', 1e-06)
    c(f'rfftfreq({n},0.3)', f'mx.fft.rfftfreq({n},0.3)', 1e-06)
for f in ('fftshift', 'ifftshift'):
    c(f'{f}(&t3,())', f'mx.fft.{f}(t3)')
    c(f'{f}(&t3,[1,-1])', f'mx.fft.{f}(t3,axes=(1,-1))')
c('as_strided(&t3,[3,4],[2,1],5)', 'mx.as_strided(t3,(3,4),(2,1),5)')
c('as_strided(&transpose(&t3,())?,[2,3],[-3,4],6)', 'mx.as_strided(mx.transpose(t3),(2,3),(-3,4),6)')
c('as_strided(&t3,[2,5],[5,1],3)', 'mx.as_strided(t3,(2,5),(5,1),3)')
c('as_strided(&t3,[3,2],[0,1],3)', 'mx.as_strided(t3,(3,2),(0,1),3)')
c('slice_at(&t3,&iu_in,[2,0],[1,2,2])', 'mx.slice(t3,iu_in,(2,0),(1,2,2))')
c('slice_at(&t3,&Array::scalar(2),1,[2,1,4])', 'mx.slice(t3,mx.array(2),(1,),(2,1,4))')
c('slice_update_at(&t3,&reshape(&v,[2,1,2])?,&iu_in,[2,1])', 'mx.slice_update(t3,v.reshape(2,1,2),iu_in,(2,1))')
c('slice_update_at(&x,&v,&Array::scalar(2),0)', 'mx.slice_update(x,v.reshape(1,4),mx.array(2),(0,))')

# Products.
c('gather_mm(&t3,&b3,Some(&iu_in),Some(&ix2))', 'mx.gather_mm(t3,b3,iu_in,ix2)', 1e-05)
c('gather_mm(&x,&b3,None,Some(&ix2))', 'mx.gather_mm(x,b3,None,ix2)', 1e-05)
c('gather_mm(&t3,&b3,None,None)', 'mx.gather_mm(t3,b3)', 1e-05)
c('gather_mm(&v,&b3,None,Some(&iu_in))', 'mx.gather_mm(v,b3,None,iu_in)', 1e-05)
c('segmented_mm(&x,&m,&Array::from_slice::<i32>(&[0,3,3,4,2,2],[3,2])?)', 'mx.segmented_mm(x,m,mx.array([[0,3],[3,4],[2,2]]))', 1e-05)
c('block_masked_mm(&big,&transpose(&big,())?,32,BlockMasks{out:Some(&mask),..Default::default()})', 'mx.block_masked_mm(big,big.T,32,mask)', 1e-04)
c('block_masked_mm(&big,&transpose(&big,())?,32,BlockMasks{out:Some(&weight),left:Some(&weight),right:Some(&transpose(&weight,())?)})', 'mx.block_masked_mm(big,big.T,32,weight,weight,weight.T)', 1e-04)
for o, q in [('Order::Euclidean', 'None'), ('1.0', '1'), ('-1.0', '-1'), ('f64::INFINITY', "float('inf')"), ('f64::NEG_INFINITY', "-float('inf')")]:
    c(f'linalg::norm(&x,{o},(),false)'.replace('Order', 'linalg::Order'), f'mx.linalg.norm(x,{q})', 1e-05)
    c(f'linalg::norm(&t3,{o},[2,0],true)'.replace('Order', 'linalg::Order'), f'mx.linalg.norm(t3,{q},axis=(2,0),keepdims=True)', 1e-05)
    c(f'linalg::norm(&t3,{o},1,false)'.replace('Order', 'linalg::Order'), f'mx.linalg.norm(t3,{q},axis=1)', 1e-05)
for o in ('0.0', '2.0', '3.0', '0.5'):
    c(f'linalg::norm(&v,{o},(),false)', f'mx.linalg.norm(v,{o})', 1e-05)
    c(f'linalg::norm(&xi,{o},0,true)', f'mx.linalg.norm(xi,{o},axis=0,keepdims=True)', 1e-05)
c('linalg::norm(&t3,linalg::Order::Frobenius,[0,1],false)', "mx.linalg.norm(t3,'fro',axis=(0,1))", 1e-05)
c('linalg::cross(&index(&x,&[S::range(..),S::range(..3)])?,&idx,-1)', 'mx.linalg.cross(x[:,:3],idx)')
c('linalg::cross(&index(&x,&[S::range(..),S::range(..2)])?,&index(&y,&[S::range(..),S::range(..2)])?,1)', 'mx.linalg.cross(x[:,:2],y[:,:2],1)')
c('linalg::cross(&x,&y,0)', 'mx.linalg.cross(x,y,0)')
for n in (1, 4, 12, 20, 28, 48, 56, 128):
    c(f'hadamard_transform(&index(&flat,&[S::range(..),S::range(..{n})])?,None)', f'mx.hadamard_transform(flat[:,:{n}])', 1e-05)
c('hadamard_transform(&x,Some(1.0))', 'mx.hadamard_transform(x,1.0)')
c('cross_entropy(&x,&Array::from_slice::<i32>(&[0,3,1],[3])?)', 'mx.fast.cross_entropy(x,mx.array([0,3,1]))', 4e-06)

# Dtypes and bytes.
for r, q in [('I32', 'int32'), ('U8', 'uint8'), ('I16', 'int16'), ('F16', 'float16'), ('U16', 'uint16'), ('Bool', 'bool_'), ('F32', 'float32')]:
    c(f'view(&x,DType::{r})', f'mx.view(x,mx.{q})', 0)
    c(f'view(&astype(&x,DType::BF16)?,DType::{r})', f'mx.view(x.astype(mx.bfloat16),mx.{q})', 0)
c('view(&greater(&xi,0)?,DType::U32)', 'mx.view(xi>0,mx.uint32)', 0)
c('view(&transpose(&x,())?,DType::I16)', 'mx.view(x.T,mx.int16)', 0)
c('view(&x,DType::C64)', 'mx.view(x,mx.complex64)', 0)
c('view(&z,DType::F32)', 'mx.view(z,mx.float32)')
for a in ('x', 'sp', 'multiply(&t3,100)?', 'divide(&t3,300)?'):
    c(f'to_fp8(&{a})', 'mx.to_fp8(%s)' % {'multiply(&t3,100)?': 't3*100', 'divide(&t3,300)?': 't3/300'}.get(a, a))
c('from_fp8(&astype(&arange(0,256,1)?,DType::U8)?,DType::F32)', 'mx.from_fp8(mx.arange(256).astype(mx.uint8),mx.float32)', 0)
c('to_fp8(&from_fp8(&astype(&arange(0,255,1)?,DType::U8)?,DType::BF16)?)', 'mx.to_fp8(mx.from_fp8(mx.arange(255).astype(mx.uint8)))')

# Quantized matrices.
for bits in (1, 2, 3, 4, 5, 6, 8):
    how = f'Quantization{{group_size:32,bits:{bits}}}'
    for i, part in enumerate(('words', 'scales', 'biases')):
        c(f'Ok(quantize(&flat,{how})?.{part})', f'mx.quantize(flat,32,{bits})[{i}]', 2e-06 if i else 0)
    c(f'dequantize(&quantize(&flat,{how})?,{how})', f'mx.dequantize(*mx.quantize(flat,32,{bits}),32,{bits})', 1e-05)
    c(f'quantized_matmul(&flat,&quantize(&flat,{how})?,true,{how})', f'mx.quantized_matmul(flat,*mx.quantize(flat,32,{bits}),True,32,{bits})', 2e-05)
how = 'Quantization::default()'
c(f'quantized_matmul(&iu_f,&quantize(&flat,{how})?,false,{how})', 'mx.quantized_matmul(iu_f,*mx.quantize(flat),transpose=False)', 2e-05)
c(f'quantized_matmul(&flat,&quantize(&zeros([3,128],DType::F32)?,{how})?,true,{how})', 'mx.quantized_matmul(flat,*mx.quantize(mx.zeros((3,128))))', 2e-05)
c(f'gather_qmm(&reshape(&flat,[4,1,64])?,&quantize(&reshape(&flat,[2,2,64])?,{how})?,QuantizedGather{{left:Some(&iu),right:Some(&iu_in),..Default::default()}},{how})', 'mx.gather_qmm(flat.reshape(4,1,64),*mx.quantize(flat.reshape(2,2,64)),lhs_indices=iu,rhs_indices=iu_in)', 2e-05)

# Attention.
for tr in (False, True):
    r = f'traditional:{str(tr).lower()}'
    c(f'rope(&t3,&RopeOptions{{{r},..RopeOptions::new(4)}})', f'mx.fast.rope(t3,4,traditional={tr},base=10000.0,scale=1.0,offset=0)', 1e-05)
    c(f'rope(&t3,&RopeOptions{{{r},scale:0.5,offset:3.into(),..RopeOptions::new(2)}})', f'mx.fast.rope(t3,2,traditional={tr},base=10000.0,scale=0.5,offset=3)', 1e-05)
    c(f'rope(&im,&RopeOptions{{{r},offset:(&iu_in).into(),frequencies:Frequencies::Periods(&index(&v,&[S::range(2..)])?),..RopeOptions::new(4)}})', f'mx.fast.rope(im,4,traditional={tr},base=None,scale=1.0,offset=iu_in,freqs=v[2:])', 1e-05)
A = 'scaled_dot_product_attention(&aq,&ak,&av,&AttentionOptions'
P = 'mx.fast.scaled_dot_product_attention(aq,ak,av,scale=0.5'
c(f'{A}::new(0.5))', f'{P})', 1e-05)
c(f'{A}{{mask:AttentionMask::Causal,..AttentionOptions::new(0.5)}})', f"{P},mask='causal')", 1e-05)
c(f'{A}{{mask:AttentionMask::Array(&greater(&amask,0)?),..AttentionOptions::new(0.5)}})', f'{P},mask=amask>0)', 1e-05)
c(f'{A}{{mask:AttentionMask::Array(&amask),sinks:Some(&v),..AttentionOptions::new(0.5)}})', f'{P},mask=amask,sinks=v)', 1e-05)
c(f'{A}{{mask:AttentionMask::Causal,sinks:Some(&v),..AttentionOptions::new(0.5)}})', f"{P},mask='causal',sinks=v)", 1e-05)
c('scaled_dot_product_attention(&astype(&aq,DType::F16)?,&astype(&ak,DType::F16)?,&astype(&av,DType::F16)?,&AttentionOptions::new(0.5))', 'mx.fast.scaled_dot_product_attention(aq.astype(mx.float16),ak.astype(mx.float16),av.astype(mx.float16),scale=0.5)', 3e-03)

RUST = {'float32': 'f32', 'int32': 'i32', 'uint32': 'u32'}
SPECIAL = {'nan': 'f32::NAN', 'inf': 'f32::INFINITY', '-inf': 'f32::NEG_INFINITY'}

def literal(value):
    text = repr(value)
    return SPECIAL.get(text, text)


lines = ['//! Written by scripts/ops_reference.py: every function on the inputs that MLX was given.', '', 'use cupola::ops::*;', 'use cupola::{Array, DType, Result, Scalar};', '', '/// Calls `case` with each expression and its value.', 'pub fn each(case: &mut dyn FnMut(&str, &dyn Fn() -> Result<Array>)) -> Result<()> {']
for name in names:
    value = globals()[name]
    if name == 'z':
        lines.append('let i = Scalar::Complex(0.0, 1.0);')
        lines.append('let z = add(&astype(&x, DType::C64)?, &multiply(&astype(&y, DType::C64)?, i)?)?;')
        continue
    data = ', '.join((literal(v) for v in value.ravel().tolist()))
    kind = RUST[value.dtype.name]
    lines.append(f'let {name} = Array::from_slice::<{kind}>(&[{data}], {list(value.shape)})?;')
lines.append('let key = random::key(7);')
lines.append('let k = Some(&key);')
for rust, _, _ in CASES:
    rust = rust.replace(',K)', ',k)').replace('(K,', '(k,')
    lines.append(f'case(r#"{rust}"#, &|| {rust});')
lines += ['Ok(())', '}', '']
with open('../ops/cases.rs', 'w') as file:
    file.write('\n'.join(lines))
for name in names:
    globals()[name] = mx.array(globals()[name])
k = mx.random.key(7)
with open('../reference/ops.txt', 'w') as file:
    for rust, python, tolerance in CASES:
        value = eval(python)
        dtype = str(value.dtype).split('.')[-1]
        if dtype in ('bfloat16', 'float16'):
            value = value.astype(mx.float32)
        value = np.array(value)
        if dtype == 'bool':
            value = value.astype(np.int32)
        if dtype == 'complex64':
            value = value.ravel().view(np.float32)
        shape = list(eval(python).shape) if dtype == 'complex64' else list(value.shape)
        data = ' '.join((str(v) for v in value.ravel()))
        rust = rust.replace(',K)', ',k)').replace('(K,', '(k,')
        print(rust, tolerance, dtype, ' '.join(map(str, shape)), data, sep='\t', file=file)
