// plugin.rs: three operators in Rust as a plug-in, without crates.
//
// SPDX-License-Identifier: Apache-2.0
//
//     rustc --edition 2021 -O --crate-type cdylib tools/python/examples/plugin.rs -o plugin.so
//     build/tether validate --backend ./plugin.so
//
// `--cfg bug` puts a mistake into rms_norm. ABI and the places of operators are
// what `tether validate --abi` prints; the structs are those of
// include/tether/backend.h and ops.h.
use std::ffi::{c_char, c_int, c_void};
use std::mem::{offset_of, size_of};
use std::slice::{from_raw_parts, from_raw_parts_mut};

const ABI: [i32; 6] = [17, 4, 232, 3016, 168, 808];
const _: () = assert!(size_of::<Ops>() == ABI[2] as usize);
const _: () = assert!(offset_of!(Ops, rms_norm) == 136 && offset_of!(Ops, silu) == 192);
const _: () = assert!(size_of::<RmsNorm>() == 48 && size_of::<Silu>() == 16);

type None = *const c_void; // what this plug-in leaves to tether
type Run<A> = unsafe extern "C" fn(*mut c_void, &A);

#[repr(C)]
pub struct Ops {
    abi: [i32; 6],
    name: *const c_char,
    summary: *const c_char,
    class: c_int,
    by_class: bool,
    time32: bool,
    own: [None; 7], // of_class, fused, self, open, close, library, packed
    first: [None; 4],
    rms_norm: Run<RmsNorm>,
    between: [None; 5],
    gelu_tanh: Run<Silu>,
    silu: Run<Silu>,
    last: [None; 4],
}
unsafe impl Sync for Ops {}

#[repr(C)]
pub struct Silu {
    x: *mut f32,
    n: i64,
}

#[repr(C)]
pub struct RmsNorm {
    y: *mut f32,
    x: *const f32,
    n: i64,
    c: i64,
    w: *const f32,
    eps: f64,
}

extern "C" {
    fn tt_fail(ctx: *mut c_void, status: c_int, format: *const c_char, ...) -> c_int;
}
const UNSUPPORTED: c_int = 5; // TT_EUNSUPPORTED: a verdict, no failure

unsafe extern "C" fn silu(_: *mut c_void, a: &Silu) {
    for x in from_raw_parts_mut(a.x, a.n as usize) {
        *x /= 1.0 + (-*x).exp();
    }
}

unsafe extern "C" fn gelu_tanh(_: *mut c_void, a: &Silu) {
    for x in from_raw_parts_mut(a.x, a.n as usize) {
        let u = (2.0f32 / std::f32::consts::PI).sqrt() * (*x + 0.044715 * *x * *x * *x);
        *x /= 1.0 + (-2.0 * u).exp();
    }
}

unsafe extern "C" fn rms_norm(ctx: *mut c_void, a: &RmsNorm) {
    if a.c > 2048 {
        tt_fail(ctx, UNSUPPORTED, c"rows of at most 2048 values".as_ptr());
        return;
    }
    let (c, eps) = (a.c as usize, if cfg!(bug) { 0.0 } else { a.eps });
    let w = from_raw_parts(a.w, c);
    for r in 0..a.n as usize {
        let x = from_raw_parts(a.x.add(r * c), c).to_vec(); // y may be x
        let mean = x.iter().map(|&v| v as f64 * v as f64).sum::<f64>() / c as f64;
        let y = from_raw_parts_mut(a.y.add(r * c), c);
        for i in 0..c {
            y[i] = (x[i] as f64 / (mean + eps).sqrt()) as f32 * w[i];
        }
    }
}

const NULL: None = std::ptr::null();
static OPS: Ops = Ops {
    abi: ABI,
    name: c"rust".as_ptr(),
    summary: c"three operators in Rust".as_ptr(),
    class: 0,
    by_class: false,
    time32: false,
    own: [NULL; 7],
    first: [NULL; 4],
    rms_norm,
    between: [NULL; 5],
    gelu_tanh,
    silu,
    last: [NULL; 4],
};

/// # Safety
/// Called by tether alone.
#[no_mangle]
pub unsafe extern "C" fn tether_backend(_version: c_int, arith: *mut *const c_char) -> &'static Ops {
    *arith = c"f32".as_ptr();
    &OPS
}
