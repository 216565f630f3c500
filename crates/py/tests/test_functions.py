"""Values of every function against MLX: each case is an expression that both packages evaluate.

Where MLX differs on purpose (documentation of the function), a case is left out: the sign of NaN is 0
there.
"""

import numpy as np
import pytest
from conftest import cc, mlx, same
from mlx import nn as mlx_nn

import cupola.nn as nn


def vals(n, k):
    """Numbers of few digits, in no order, with signs and repeats."""
    return ((np.arange(n) * 37 * k + k * 5) % 23 - 11) / 4


def mk(shape, k=1, dtype=np.float32):
    return vals(int(np.prod(shape)), k).astype(dtype).reshape(shape)


INPUTS = dict(
    x=mk((3, 4)), y=mk((3, 4), 2), v=mk((4,), 3), t3=mk((2, 3, 4), 2), m=mk((4, 5), 3), b3=mk((2, 4, 5), 4),
    xi=(vals(12, 1) * 4).astype(np.int32).reshape(3, 4), yi=(vals(12, 2) * 4).astype(np.int32).reshape(3, 4),
    u=(np.abs(vals(12, 1)) / 3).astype(np.float32).reshape(3, 4), z=(mk((3, 4)) + 1j * mk((3, 4), 2)).astype(np.complex64),
    im=mk((2, 6, 5, 4), 3), w=mk((6, 3, 3, 4), 5), wg=mk((6, 3, 3, 2), 5), i1=mk((2, 7, 4), 3), w1=mk((6, 3, 4), 5),
    i3=mk((1, 3, 3, 4, 2), 3), w3=mk((3, 2, 2, 2, 2), 5),
    sp=np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -2.5, 1.5, 2.5, 1e-08], np.float32),
    idx=np.array([2, -1, 0], np.int32), ix2=np.array([[1], [0]], np.int32), iu=np.array([3, 0], np.uint32),
    iu_in=np.array([1, 0], np.uint32), sp_less=mk((9,), 7), big=mk((40, 36), 3),
    mask=np.array([[1, 0], [0, 1]], np.int32), weight=np.array([[0.5, 2], [0, 1.5]], np.float32),
    flat=mk((2, 128), 5), iu_f=mk((2, 2), 5), aq=mk((2, 4, 3, 4), 3), ak=mk((2, 2, 5, 4), 5), av=mk((2, 2, 5, 2), 4),
    amask=mk((4, 3, 5), 2),
)
CASES = []


def c(ours, theirs=None, tolerance=2e-06):
    """A case: what Cupola evaluates, what MLX does, and how far they may be apart."""
    CASES.append((ours, theirs or ours, tolerance))


# Elementwise.
for f in """abs negative sign square exp expm1 sin cos tan arctan sinh cosh tanh arcsinh sigmoid erf floor ceil
degrees radians isnan isinf isfinite isposinf isneginf""".split():
    c(f"mx.{f}(x)", tolerance=4e-06)
    if f != "sign":
        c(f"mx.{f}(sp)", tolerance=4e-06)
for f in "sqrt rsqrt log log2 log10 log1p arcsin arccos arctanh erfinv reciprocal".split():
    c(f"mx.{f}(u)", tolerance=4e-06)
c("mx.arccosh(u+1)", tolerance=1e-05)
for f in """sqrt rsqrt log log2 log10 log1p exp sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh
arctanh sign square negative conjugate real imag abs reciprocal""".split():
    c(f"mx.{f}(z)", tolerance=3e-05)
for text in ("mx.power(z,2.0)", "mx.power(z,z)"):
    c(text, tolerance=3e-05)
for text in ("z*z", "z/y"):
    c(text, tolerance=1e-05)
for text in ("mx.round(sp)", "mx.round(x,1)", "mx.round(xi,-1)", "mx.round(z)", "mx.nan_to_num(sp)"):
    c(text)
for f in "add subtract multiply maximum minimum logaddexp arctan2".split():
    for arguments in ("x,y", "t3,v", "xi,1.5"):
        c(f"mx.{f}({arguments})", tolerance=4e-06)
for text in "x/(y*y+1) xi/3 2/xi xi//3 x//0.75 xi%3 xi%-3 xi**2 yi<<2 yi>>1 ~xi".split():
    c(text)
for text in ("x%0.75", "mx.abs(x)**y", "x**3"):
    c(text, tolerance=1e-05)
for f in "bitwise_and bitwise_or bitwise_xor".split():
    c(f"mx.{f}(xi,yi)")
for f in "equal not_equal less less_equal greater greater_equal logical_and logical_or".split():
    c(f"mx.{f}(xi,yi)")
    c(f"mx.{f}(sp,0)")
for text in """mx.logical_not(xi)|mx.isclose(x,y)|mx.isclose(sp,sp,equal_nan=True)|mx.clip(x,-1,1.5)|mx.where(x>0,x,v)
mx.where(xi,1,2.5)|mx.count_nonzero(x)|mx.count_nonzero(t3,axis=(0,2),keepdims=True)|mx.count_nonzero(sp,axis=0)
mx.minmax(t3,1,keepdims=True)[0]|mx.minmax(sp)[1]|mx.matrix_transpose(t3)""".replace("\n", "|").split("|"):
    c(text)
for a in ("x", "sp", "xi"):
    c(f"mx.trunc({a})")
    c(f"mx.positive({a})")

# Reductions.
for f in "sum prod max min mean".split():
    for axis in ("None", "0", "-1", "(0,2)"):
        c(f"mx.{f}(t3,axis={axis})", tolerance=1e-05)
    c(f"mx.{f}(xi,axis=1,keepdims=True)")
for f in "var std".split():
    for axis in ("None", "1"):
        for ddof in (0, 1):
            c(f"mx.{f}(t3,axis={axis},ddof={ddof})", tolerance=1e-05)
for text in ("mx.all(xi,axis=1)", "mx.any(xi,axis=0,keepdims=True)", "mx.median(t3,axis=1)", "mx.median(xi)"):
    c(text)
c("mx.median(t3,axis=(0,2),keepdims=True)")
for f in "argmax argmin".split():
    c(f"mx.{f}(t3,axis=1)")
    c(f"mx.{f}(t3,keepdims=True)")
for axis in ("-1", "0"):
    c(f"mx.sort(t3,axis={axis})")
    c(f"mx.take_along_axis(t3,mx.argsort(t3,axis={axis}),axis={axis})", f"mx.sort(t3,axis={axis})")
c("mx.sort(t3,axis=None)")
# They are in order here.
c("mx.topk(t3,2,axis=1)", "mx.sort(mx.topk(t3,2,axis=1),axis=1)")
c("mx.topk(t3,3,axis=None)", "mx.sort(mx.topk(t3,3,axis=None))")
c("mx.softmax(t3,axis=-1)")
c("mx.softmax(t3,axis=(0,1))")
c("mx.logsumexp(t3,axis=1)", tolerance=4e-06)
c("mx.logsumexp(t3,keepdims=True)", tolerance=4e-06)
c("mx.logsumexp(mx.full((2,3),-mx.inf),axis=1)")
c("mx._nn.log_softmax(t3,-1)", "nn.log_softmax(t3,axis=-1)", 5e-06)

# Movement.
for text in """t3.reshape(4,-1)|mx.flatten(t3,1,-1)|mx.unflatten(t3,-1,(2,-1))|mx.transpose(t3)|mx.transpose(t3,(1,0,-1))
mx.swapaxes(t3,0,-1)|mx.moveaxis(t3,0,1)|mx.concatenate([x,xi],0)|mx.concatenate([x,y],None)|mx.stack([x,y],-1)
mx.split(t3,[1,2],1)[1]|mx.split(t3,2,2)[1]|mx.tile(x,(2,1,3))|mx.tile(t3,(2,))|mx.repeat(x,3,1)|mx.repeat(x,2)
mx.roll(x,5,1)|mx.roll(x,-3)|mx.roll(x,(1,-2),(0,1))|mx.pad(x,[(1,0),(2,3)],constant_values=7.5)
mx.pad(x,(1,2),mode='edge')|mx.trace(x,1)|mx.arange(1,10,3)|mx.arange(1.0,2.0,0.25)|mx.arange(5,0,-2)
mx.linspace(-1,2,7)|mx.meshgrid(v,idx)[0]|mx.meshgrid(v,idx,indexing='ij')[1]|mx.take(x,idx,1)|mx.take(t3,ix2,2)
mx.take(x,idx)|mx.take(t3,iu,2)|mx.take_along_axis(x,idx.reshape(3,1),1)
mx.put_along_axis(x[:1],idx.reshape(3,1),mx.array(9.5),1)
mx.put_along_axis(x,idx.reshape(3,1),mx.array(9.5),1)|mx.put_along_axis(xi,idx,idx,None)
mx.as_strided(t3,(3,4),(2,1),5)|mx.as_strided(mx.transpose(t3),(2,3),(-3,4),6)|mx.as_strided(t3,(2,5),(5,1),3)
mx.as_strided(t3,(3,2),(0,1),3)|mx.slice(t3,iu_in,(2,0),(1,2,2))|mx.slice(t3,mx.array(2),(1,),(2,1,4))
mx.slice_update(t3,v.reshape(2,1,2),iu_in,(2,1))|mx.slice_update(x,v.reshape(1,4),mx.array(2),(0,))
t3[None,0,None,idx]""".replace("\n", "|").split("|"):
    c(text)
c("mx.flip(x,1)", "x[:,::-1]")
for axes in ("(0,0)", "(1,-1,0)", "(-2,0)"):
    c(f"mx.flip(x,{axes})")
c("mx.take(x,-1,0)", "x[-1]")
for k in (-2, -1, 0, 1, 2, 3, 4):
    for text in ("diagonal(t3,{},1,2)", "diag(v,{})", "eye(3,4,{})", "tri(3,4,{})", "tril(t3,{})", "triu(t3,{})"):
        c("mx." + text.format(k))
for p in """1|-1,1:|...,2|slice(None),slice(None,None,-1)|slice(None),slice(None),slice(None,None,-2)
slice(None),slice(0,2),slice(1,None,2)|slice(None),idx|slice(None),slice(1,3),iu|ix2,idx|ix2,slice(None),iu
1,slice(None),iu|slice(None),slice(None,None,-1),iu""".replace("\n", "|").split("|"):
    c(f"t3[{p}]")
    for name, number in [("add", 2.5), ("maximum", 0.5), ("multiply", 2.0), ("minimum", 0.5)]:
        c(f"t3.at[{p}].{name}({number})")
    c(f"put(t3,'{p}')")

# Products.
for text in """x@m|t3@m|t3@b3|v@m|x@v|v@v|x@b3|v@b3|t3@v|z@z.T|mx.inner(t3,x)|mx.tensordot(t3,b3,[[0,2],[0,1]])
mx.tensordot(t3,m,1)|mx.addmm(m[0],x,m,0.5,2.0)|mx.gather_mm(t3,b3,iu_in,ix2)|mx.gather_mm(x,b3,None,ix2)
mx.gather_mm(t3,b3)|mx.gather_mm(v,b3,None,iu_in)|mx.segmented_mm(x,m,mx.array([[0,3],[3,4],[2,2]]))""".replace(
    "\n", "|"
).split("|"):
    c(text, tolerance=1e-05)
for text in ("mx.outer(v,idx)", "mx.kron(x,v)", "mx.kron(v,x)"):
    c(text)
c("mx.vecdot(x,y)", "(x*y).sum(-1)", 1e-05)
c("mx.block_masked_mm(big,big.T,32,mask)", tolerance=1e-04)
c("mx.block_masked_mm(big,big.T,32,weight,weight,weight.T)", tolerance=1e-04)
for text in """'ij,jk->ik',x,m|'ij,jk',x,m|'bij,bjk->bik',t3,b3|'bij,bjk->ki',t3,b3|'ij->ji',x|'ij->',x|'ij,ij->i',x,y
'i,j->ij',v,v|'bij,jk,k->bi',t3,m,m[0]|'...ij,...jk->...ik',t3,b3|'...i->...',t3|'i...,i...->...',x,y
'ij,kj->ikj',x,y|'bij,ij->b',t3,x|'ab,cd->abcd',x,m|'iij->j',t3[:,:2]|'ii->i',m[:,:4]|'ij,jk,kl->il',x,m,m.T
'i,j,k->kji',v,v,v|'...i,ij,j->...',t3,m,m[0]""".replace("\n", "|").split("|"):
    c(f"einsum({text})", tolerance=1e-05)
c("einsum('bij,jk,lk,bl->i',t3,m,m,y[:2])", tolerance=2e-05)
for order in ("None", "1", "-1", "float('inf')", "-float('inf')"):
    c(f"mx.linalg.norm(x,{order})", tolerance=1e-05)
    c(f"mx.linalg.norm(t3,{order},axis=(2,0),keepdims=True)", tolerance=1e-05)
    c(f"mx.linalg.norm(t3,{order},axis=1)", tolerance=1e-05)
for order in ("0.0", "2.0", "3.0", "0.5"):
    c(f"mx.linalg.norm(v,{order})", tolerance=1e-05)
    c(f"mx.linalg.norm(xi,{order},axis=0,keepdims=True)", tolerance=1e-05)
c("mx.linalg.norm(t3,'fro',axis=(0,1))", tolerance=1e-05)
c("mx._nn.norm(t3,(0,1))", "mx.sqrt((t3*t3).sum((0,1)))", 1e-05)
for text in ("x[:,:3],idx", "x[:,:2],y[:,:2],1", "x,y,0"):
    c(f"mx.linalg.cross({text})")
for n in (1, 4, 12, 20, 28, 48, 56, 128):
    c(f"mx.hadamard_transform(flat[:,:{n}])", tolerance=1e-05)
c("mx.hadamard_transform(x,1.0)")

# Convolutions and pooling.
for text in """mx.conv2d(im,w)|mx.conv2d(im,w,(2,1),(1,0),(1,2))|mx.conv2d(im,wg,1,1,1,2)|mx.conv1d(i1,w1,2,1)
mx.conv3d(i3,w3,1,1)|mx.conv_general(im,w,1,2,1,2,1,True)|mx.conv_transpose2d(im,wg,2,0,1,0,2)
mx.conv_transpose3d(i3,w3,2)""".replace("\n", "|").split("|"):
    c(text, tolerance=1e-05)
for options in ("1,0,1,0", "2,1,1,1", "2,0,2,0", "3,2,1,2", "2,2,1,1"):
    c(f"mx.conv_transpose2d(im,w,{options})", tolerance=1e-05)
    c(f"mx.conv_transpose1d(i1,w1,{options})", tolerance=1e-05)
for options in ("1,0,1,1", "1,1,1,1", "2,1,1,5", "3,2,2,4"):
    c(f"mx.conv_transpose2d(im,w,{options})", tolerance=1e-05)
    c(f"mx.conv_transpose1d(i1,w1,{options})", tolerance=1e-05)
c("mx.conv_transpose1d(mx.ones((1,1,1)),mx.ones((1,1,1)),1,1,1,2)")
c("nn.MaxPool2d(3,2,1)(im)")
for layer in ("MaxPool2d(2)", "MaxPool2d((3,2),1)", "AvgPool2d(2)", "AvgPool2d(3,2,1)", "BatchNorm(4)"):
    c(f"nn.{layer}(im*(1+2j))", tolerance=1e-05)
c("nn.MaxPool2d(2)(im)")
c("nn.AvgPool2d(3,2,1)(im)", tolerance=1e-05)
c("nn.AvgPool1d(2)(i1)", tolerance=1e-05)

# Layers' functions.
for f in "relu relu6 gelu gelu_approx silu softplus softsign mish log_sigmoid selu".split():
    c(f"mx._nn.{f}(x)", f"nn.{f}(x)", 4e-06)
c("mx._nn.hard_swish(x)", "nn.hardswish(x)", 4e-06)
for text in ("elu(x,0.7)", "celu(x,0.7)", "leaky_relu(x,0.1)", "glu(x,-1)", "step(x,0.5)", "hard_tanh(x)"):
    c(f"mx._nn.{text}", f"nn.{text}")
for text in ("hard_shrink(x,0.5)", "softshrink(x,0.5)", "prelu(x,mx.array(0.25))", "softmin(x,-1)"):
    c(f"mx._nn.{text}", f"nn.{text}")
c("mx.fast.layer_norm(t3,v,v,1e-5)", tolerance=5e-06)
c("mx.fast.rms_norm(t3,v,1e-5)", tolerance=5e-06)
c("mx.fast.cross_entropy(x,mx.array([0,3,1]))", tolerance=4e-06)

# Random numbers: the same for the same key.
for dtype in ("float32", "float16", "bfloat16"):
    near = 2e-06 if dtype == "float32" else 0
    c(f"mx.random.uniform(-3,5,(16,),dtype=mx.{dtype},key=k)", tolerance=0)
    c(f"mx.random.uniform(shape=(16,),dtype=mx.{dtype},key=k)", tolerance=0)
    for f in ("normal((16,)", "gumbel((16,)", "laplace((16,)"):
        c(f"mx.random.{f},dtype=mx.{dtype},key=k)", tolerance=near)
    c(f"mx.random.truncated_normal(mx.array(-1.0),mx.array(2.0),(16,),dtype=mx.{dtype},key=k)", tolerance=near)
c("mx.random.uniform(v,v+2,(3,4),key=k)", tolerance=0)
for text in """split(k,5)|bernoulli(0.3,(16,),key=k)|bernoulli(u,(3,4),key=k)|randint(-5,20,(16,),key=k)
randint(0,200,(16,),dtype=mx.uint8,key=k)|permutation(40,key=k)|permutation(t3,axis=2,key=k)|categorical(x,key=k)
categorical(x,axis=0,num_samples=7,key=k)|categorical(flat[0],key=mx.random.key(3))|categorical(flat[0],-1,(),key=mx.random.key(3))
categorical(flat[:1],key=mx.random.key(3))|categorical(flat[:1].T,0,key=mx.random.key(3))|categorical(flat[:1,None],key=mx.random.key(3))
categorical(flat[0],num_samples=7,key=mx.random.key(3))|categorical(flat[:1],-1,(7,1),key=mx.random.key(3))""".replace("\n", "|").split("|"):
    c("mx.random." + text)
c("mx.random.seed(3) or mx.random.uniform(shape=(3,)) is None or mx.random.uniform(shape=(5,))", tolerance=0)

# Order, search and scans.
for f in "cumsum cumprod cummax cummin logcumsumexp".split():
    for axis in ("None", "0", "1", "-1"):
        c(f"mx.{f}(t3,axis={axis})", tolerance=1e-05)
    for options in ("reverse=True", "inclusive=False", "reverse=True,inclusive=False"):
        c(f"mx.{f}(t3,axis=1,{options})", tolerance=1e-05)
    for text in ("xi,axis=1", "xi>-9,axis=1", "xi.astype(mx.uint8),axis=0,inclusive=False"):
        c(f"mx.{f}({text})", tolerance=1e-05)
c("mx.cumsum(z,axis=1)", tolerance=1e-05)
c("mx.cumprod(z,axis=0)", tolerance=1e-05)
for options in ("axis=0", "axis=1,reverse=True", "axis=None", "axis=1,inclusive=False"):
    c(f"mx.logcumsumexp(z,{options})", tolerance=1e-05)
c("mx.cummax(sp,axis=0)")
c("mx.cummin(sp,axis=0)")
for k in (0, 2, -1):
    c(f"mx.sort(mx.partition(t3,{k},axis=1),axis=1)")
c("mx.partition(t3,1,axis=-1)[...,1]")
c("mx.take_along_axis(t3,mx.argpartition(t3,2,axis=-1),-1)[...,2]", "mx.partition(t3,2,axis=-1)[...,2]")
c("mx.partition(t3,7,axis=None)[7]")
for side in ("left", "right"):
    for text in ("mx.sort(x,axis=None),y", "mx.sort(sp),sp", "mx.sort(idx),v", "mx.zeros((0,)),v"):
        c(f"mx.searchsorted({text},side='{side}')")
for text in ("xi,5", "xi,20", "t3,30", "sp,14", "idx,3", "xi,0"):
    for part in range(4):
        c(f"mx.unique({text},True,True,True)[{part}]")
c("mx.unique(xi,14,fill_value=7)")
c("mx.unique(xi>0,3,False,False,True)[1]")

# Sequences.
for text in ("t3,1,axis=-1", "t3,2,axis=0", "t3,0,axis=1", "t3,9,axis=1", "xi>0,1,axis=1", "xi.astype(mx.uint8),axis=0"):
    c(f"mx.diff({text})")
for mode in ("full", "same", "valid"):
    c(f"mx.convolve(sp_less,v,mode='{mode}')", tolerance=1e-05)
    c(f"mx.convolve(v[:3],sp_less,mode='{mode}')", tolerance=1e-05)
for f in "bartlett blackman hamming hanning".split():
    for n in (0, 1, 2, 7, 12):
        c(f"mx.{f}({n})", tolerance=1e-06)
for n in (1, 4, 5):
    c(f"mx.fft.fftfreq({n},0.3)", tolerance=1e-06)
    c(f"mx.fft.rfftfreq({n},0.3)", tolerance=1e-06)
for f in ("fftshift", "ifftshift"):
    c(f"mx.fft.{f}(t3)")
    c(f"mx.fft.{f}(t3,axes=(1,-1))")

# Dtypes and bytes.
for dtype in "int32 uint8 int16 float16 uint16 bool_ float32".split():
    c(f"mx.view(x,mx.{dtype})", tolerance=0)
    c(f"mx.view(x.astype(mx.bfloat16),mx.{dtype})", tolerance=0)
for text in ("mx.view(xi>0,mx.uint32)", "mx.view(x.T,mx.int16)", "mx.view(x,mx.complex64)"):
    c(text, tolerance=0)
c("mx.view(z,mx.float32)")
for text in ("x", "sp", "t3*100", "t3/300"):
    c(f"mx.to_fp8({text})")
c("mx.from_fp8(mx.arange(256).astype(mx.uint8),mx.float32)", tolerance=0)
c("mx.to_fp8(mx.from_fp8(mx.arange(255).astype(mx.uint8)))")

# Quantized matrices.
for bits in (1, 2, 3, 4, 5, 6, 8):
    how = f"32,{bits}"
    for part in range(3):
        c(f"mx.quantize(flat,{how})[{part}]", tolerance=2e-06 if part else 0)
    c(f"mx.dequantize(*mx.quantize(flat,{how}),{how})", tolerance=1e-05)
    c(f"mx.quantized_matmul(flat,*mx.quantize(flat,{how}),True,{how})", tolerance=2e-05)
for text in (
    "quantized_matmul(iu_f,*mx.quantize(flat),transpose=False)",
    "quantized_matmul(flat,*mx.quantize(mx.zeros((3,128))))",
    "gather_qmm(flat.reshape(4,1,64),*mx.quantize(flat.reshape(2,2,64)),lhs_indices=iu,rhs_indices=iu_in)",
    "gather_qmm(flat.reshape(4,1,64),*mx.quantize(flat.reshape(4,1,64)),lhs_indices=iu,rhs_indices=iu_in)",
    "gather_qmm(flat.reshape(4,1,64),*mx.quantize(flat.reshape(4,1,64)),rhs_indices=ix2)",
):
    c(f"mx.{text}", tolerance=2e-05)

# Attention.
for traditional in (False, True):
    how = f"traditional={traditional}"
    c(f"mx.fast.rope(t3,4,{how},base=10000.0,scale=1.0,offset=0)", tolerance=1e-05)
    c(f"mx.fast.rope(t3,2,{how},base=10000.0,scale=0.5,offset=3)", tolerance=1e-05)
    c(f"mx.fast.rope(t3[:,:0],2,{how},base=10000.0,scale=1.0,offset=0)")
    c(f"mx.fast.rope(im,4,{how},base=None,scale=1.0,offset=iu_in,freqs=v[2:])", tolerance=1e-05)
for options in ("", ",mask='causal'", ",mask=amask>0", ",mask=amask,sinks=v", ",mask='causal',sinks=v"):
    c(f"mx.fast.scaled_dot_product_attention(aq,ak,av,scale=0.5{options})", tolerance=1e-05)
half = ",".join(f"{a}.astype(mx.float16)" for a in ("aq", "ak", "av"))
c(f"mx.fast.scaled_dot_product_attention({half},scale=0.5)", tolerance=3e-03)


def names(package, layers, own):
    """What the expressions refer to."""
    arrays = {name: package.array(value) for name, value in INPUTS.items()}
    return dict(arrays, mx=package, nn=layers, k=package.random.key(7), **own)


def put(x, where):
    """Twice x at these places, and x elsewhere."""
    y = cc.array(x)
    index = eval(f"np.s_[{where}]", dict(OURS, np=np))
    y[index] = (x * 2)[index]
    return y


def put_by_numpy(x, where):
    y = np.array(x)
    index = eval(f"np.s_[{where}]", dict(INPUTS, np=np))
    y[index] = (np.array(x) * 2)[index]
    return mlx.array(y)


def einsum_by_numpy(text, *arrays):
    return mlx.array(np.einsum(text, *[np.array(a) for a in arrays]).astype(np.float32))


OURS = names(cc, nn, dict(put=put, einsum=cc.einsum))
THEIRS = names(mlx, mlx_nn, dict(put=put_by_numpy, einsum=einsum_by_numpy))


@pytest.mark.parametrize("ours,theirs,tolerance", CASES, ids=[case[0] for case in CASES])
def test_function(ours, theirs, tolerance):
    same(eval(ours, dict(OURS)), eval(theirs, dict(THEIRS)), tolerance, tolerance)


def test_no_case_is_lost():
    assert len(CASES) == 785


def test_ranges_are_exact():
    assert cc.arange(2**60, 2**60 + 5).tolist() == [2**60 + k for k in range(5)]
    assert cc.arange(2**60 + 4, 2**60, -2).tolist() == [2**60 + 4, 2**60 + 2]
    assert cc.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert cc.arange(0, 5, -1).tolist() == cc.arange(5, 5).tolist() == []
    with cc.stream(cc.cpu):
        fine = cc.arange(0.0, 1.0, 0.1, dtype=cc.float64)
        np.testing.assert_allclose(np.array(fine), np.arange(10) * 0.1, rtol=1e-15)


def test_pads_are_exact_and_have_derivatives():
    big = 2**53 + 1
    x = cc.array([1], dtype=cc.int64)
    assert cc.pad(x, 1, constant_values=cc.array(big, dtype=cc.int64)).tolist() == [big, 1, big]
    assert cc.pad(x, 1, constant_values=big).tolist() == [big, 1, big]
    slope = cc.grad(lambda v: cc.pad(cc.ones(3), 2, constant_values=v).sum())(cc.array(0.5))
    assert slope.item() == 4


@pytest.mark.parametrize(
    "widths", [[1, 2], [[1, 2]], [[0, 1], [2, 0], [1, 1]], 1, [1], [1, 1, 1], [], [[1, 2], [3, 4]], [1.0, 2.0], [True]]
)
@pytest.mark.parametrize("form", ["array", "numpy", "list of arrays"])
def test_widths_of_pads_as_arrays(widths, form):
    """As in MLX: a number, a pair, or a pair for each axis."""

    def padded(mx):
        given = mx.array(widths) if form == "array" else np.array(widths)
        if form == "list of arrays" and isinstance(widths, list):
            given = [mx.array(width) for width in widths]
        try:
            return mx.pad(mx.zeros((2, 3, 3)), given).shape
        except (TypeError, ValueError) as error:
            return type(error)

    assert padded(cc) == padded(mlx)


@pytest.mark.parametrize("shape", [(2,), (1, 2), (), (0,), (2, 1, 1)])
def test_indices_into_all_elements_have_one_axis(shape):
    """As in MLX and NumPy."""
    for name in ("take_along_axis", "put_along_axis"):
        for mx in (cc, mlx):
            x, at = mx.arange(6).reshape(2, 3), mx.zeros(shape, dtype=mx.int32)
            more = (at,) if name.startswith("put") else ()
            if len(shape) == 1:
                assert getattr(mx, name)(x, at, *more, axis=None).shape == ((2, 3) if more else shape)
            else:
                with pytest.raises(ValueError, match="dimension" if mx is mlx else "one axis"):
                    getattr(mx, name)(x, at, *more, axis=None)
