//! Texture reference management (deprecated).

use crate::arrays;
use crate::attributes;
use crate::contexts;
use crate::error::CuResult;
use crate::formats;
use crate::texture_references::{self, State, Target, find};
use crate::texture_views::TEXTURE_FLAGS;
use cuda_abi::args::{Array, In, Out};
use cuda_abi::driver::*;
use entry_macros::entry_point;

/// A reference that no kernel reads: those of modules are made with them.
#[entry_point]
fn cuTexRefCreate(pTexRef: Out<CUtexref>) -> CuResult {
    pTexRef.check()?.set(texture_references::create()?)?;
    Ok(())
}

#[entry_point]
fn cuTexRefDestroy(hTexRef: CUtexref) -> CuResult {
    texture_references::destroy(hTexRef)
}

#[entry_point]
fn cuTexRefSetArray(hTexRef: CUtexref, hArray: CUarray, Flags: u32) -> CuResult {
    let descriptor = arrays::find(hArray)?.descriptor;
    bind_array(hTexRef, Target::Array(hArray), &descriptor, Flags)
}

#[entry_point]
fn cuTexRefSetMipmappedArray(hTexRef: CUtexref, hMipmappedArray: CUmipmappedArray, Flags: u32) -> CuResult {
    let largest = arrays::find_mipmapped(hMipmappedArray)?.level(0)?;
    let descriptor = arrays::find(largest)?.descriptor;
    bind_array(hTexRef, Target::Mipmapped(hMipmappedArray), &descriptor, Flags)
}

/// The one flag takes the array's format over.
fn bind_array(reference: CUtexref, target: Target, array: &CUDA_ARRAY3D_DESCRIPTOR, flags: u32) -> CuResult {
    if flags & !CU_TRSA_OVERRIDE_FORMAT != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    set(reference, |state| {
        state.target = target;
        if flags & CU_TRSA_OVERRIDE_FORMAT != 0 {
            state.format = (array.Format, array.NumChannels);
        }
    })
}

/// Memory in a row; null unbinds. What lies before an aligned address is told, for the kernel to go on from there; without a place to tell it, there must be
/// nothing.
fn set_address(reference: CUtexref, address: CUdeviceptr, bytes: usize, can_tell: bool) -> CuResult<u64> {
    let device = contexts::usable()?;
    let alignment = attributes::attribute(device.attributes(), CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    let offset = address.0 % alignment.map_or(1, |alignment| alignment as u64);
    if offset != 0 && !can_tell {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    set(reference, |state| state.target = Target::Linear { address, offset, bytes })?;
    Ok(offset)
}

#[entry_point]
fn cuTexRefSetAddress_v2(
    ByteOffset: Out<usize>,
    hTexRef: CUtexref,
    dptr: CUdeviceptr,
    bytes: usize,
) -> CuResult {
    ByteOffset.set_if_wanted(set_address(hTexRef, dptr, bytes, !ByteOffset.is_null())? as usize);
    Ok(())
}

#[entry_point]
fn cuTexRefSetAddress(ByteOffset: Out<u32>, hTexRef: CUtexref, dptr: CUdeviceptr_v1, bytes: u32) -> CuResult {
    let address = CUdeviceptr(dptr.into());
    ByteOffset.set_if_wanted(set_address(hTexRef, address, bytes as usize, !ByteOffset.is_null())? as u32);
    Ok(())
}

fn set_rows(
    reference: CUtexref,
    rows: &CUDA_ARRAY_DESCRIPTOR,
    address: CUdeviceptr,
    pitch: usize,
) -> CuResult {
    let &CUDA_ARRAY_DESCRIPTOR { Width: width, Height: height, Format, NumChannels } = rows;
    find(reference)?.change(|state| {
        state.format = (Format, NumChannels);
        state.bind(Target::Rows { address, width, height, pitch })
    })
}

#[entry_point]
fn cuTexRefSetAddress2D_v3(
    hTexRef: CUtexref,
    desc: In<CUDA_ARRAY_DESCRIPTOR>,
    dptr: CUdeviceptr,
    Pitch: usize,
) -> CuResult {
    set_rows(hTexRef, &desc.get()?, dptr, Pitch)
}

#[entry_point]
fn cuTexRefSetAddress2D_v2(
    hTexRef: CUtexref,
    desc: In<CUDA_ARRAY_DESCRIPTOR>,
    dptr: CUdeviceptr,
    Pitch: usize,
) -> CuResult {
    set_rows(hTexRef, &desc.get()?, dptr, Pitch)
}

#[entry_point]
fn cuTexRefSetAddress2D(
    hTexRef: CUtexref,
    desc: In<CUDA_ARRAY_DESCRIPTOR_v1>,
    dptr: CUdeviceptr_v1,
    Pitch: u32,
) -> CuResult {
    set_rows(hTexRef, &desc.get()?.into(), CUdeviceptr(dptr.into()), Pitch as usize)
}

#[entry_point]
fn cuTexRefSetFormat(hTexRef: CUtexref, fmt: CUarray_format, NumPackedComponents: i32) -> CuResult {
    let channels = u32::try_from(NumPackedComponents).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    formats::of_array(fmt, channels)?;
    set(hTexRef, |state| state.format = (fmt, channels))
}

/// Sets what needs no check beyond its caller's.
fn set(reference: CUtexref, change: impl FnOnce(&mut State)) -> CuResult {
    find(reference)?.change(|state| {
        change(state);
        Ok(())
    })
}

fn index(dim: i32) -> CuResult<usize> {
    match dim {
        0..3 => Ok(dim as usize),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

#[entry_point]
fn cuTexRefSetAddressMode(hTexRef: CUtexref, dim: i32, am: CUaddress_mode) -> CuResult {
    let dim = index(dim)?;
    am.name().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    set(hTexRef, |state| state.texture.addressMode[dim] = am)
}

#[entry_point]
fn cuTexRefSetFilterMode(hTexRef: CUtexref, fm: CUfilter_mode) -> CuResult {
    fm.name().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    set(hTexRef, |state| state.texture.filterMode = fm)
}

#[entry_point]
fn cuTexRefSetMipmapFilterMode(hTexRef: CUtexref, fm: CUfilter_mode) -> CuResult {
    fm.name().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    set(hTexRef, |state| state.texture.mipmapFilterMode = fm)
}

#[entry_point]
fn cuTexRefSetMipmapLevelBias(hTexRef: CUtexref, bias: f32) -> CuResult {
    set(hTexRef, |state| state.texture.mipmapLevelBias = bias)
}

#[entry_point]
fn cuTexRefSetMipmapLevelClamp(
    hTexRef: CUtexref,
    minMipmapLevelClamp: f32,
    maxMipmapLevelClamp: f32,
) -> CuResult {
    set(hTexRef, |state| {
        state.texture.minMipmapLevelClamp = minMipmapLevelClamp;
        state.texture.maxMipmapLevelClamp = maxMipmapLevelClamp;
    })
}

/// Told again as it was given, whatever there is.
#[entry_point]
fn cuTexRefSetMaxAnisotropy(hTexRef: CUtexref, maxAniso: u32) -> CuResult {
    set(hTexRef, |state| state.texture.maxAnisotropy = maxAniso)
}

/// Red, green, blue, alpha.
#[entry_point]
unsafe fn cuTexRefSetBorderColor(hTexRef: CUtexref, pBorderColor: *mut f32) -> CuResult {
    // SAFETY: the manual wants four numbers.
    let colour = unsafe { In::new(pBorderColor.cast::<[f32; 4]>().cast_const()) }.get()?;
    set(hTexRef, |state| state.texture.borderColor = colour)
}

#[entry_point]
fn cuTexRefSetFlags(hTexRef: CUtexref, Flags: u32) -> CuResult {
    // As for objects, but for what only those have.
    if Flags & !(TEXTURE_FLAGS & !CU_TRSF_SEAMLESS_CUBEMAP) != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    set(hTexRef, |state| state.texture.flags = Flags)
}

fn address(reference: CUtexref) -> CuResult<CUdeviceptr> {
    match find(reference)?.state().target {
        Target::Linear { address, .. } | Target::Rows { address, .. } => Ok(address),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

#[entry_point]
fn cuTexRefGetAddress_v2(pdptr: Out<CUdeviceptr>, hTexRef: CUtexref) -> CuResult {
    pdptr.check()?.set(address(hTexRef)?)?;
    Ok(())
}

#[entry_point]
fn cuTexRefGetAddress(pdptr: Out<CUdeviceptr_v1>, hTexRef: CUtexref) -> CuResult {
    let address = u32::try_from(address(hTexRef)?.0).map_err(|_| CUDA_ERROR_NOT_SUPPORTED)?;
    pdptr.check()?.set(address)?;
    Ok(())
}

#[entry_point]
fn cuTexRefGetArray(phArray: Out<CUarray>, hTexRef: CUtexref) -> CuResult {
    let Target::Array(array) = find(hTexRef)?.state().target else {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    };
    phArray.check()?.set(array)?;
    Ok(())
}

#[entry_point]
fn cuTexRefGetMipmappedArray(phMipmappedArray: Out<CUmipmappedArray>, hTexRef: CUtexref) -> CuResult {
    let Target::Mipmapped(array) = find(hTexRef)?.state().target else {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    };
    phMipmappedArray.check()?.set(array)?;
    Ok(())
}

/// Either may be unwanted.
#[entry_point]
fn cuTexRefGetFormat(pFormat: Out<CUarray_format>, pNumChannels: Out<i32>, hTexRef: CUtexref) -> CuResult {
    let (format, channels) = find(hTexRef)?.state().format;
    pFormat.set_if_wanted(format);
    pNumChannels.set_if_wanted(channels as i32);
    Ok(())
}

/// Writes one thing of how a reference is read.
fn tell<T>(place: Out<T>, reference: CUtexref, what: impl FnOnce(&CUDA_TEXTURE_DESC) -> T) -> CuResult {
    place.check()?.set(what(&find(reference)?.state().texture))?;
    Ok(())
}

#[entry_point]
fn cuTexRefGetAddressMode(pam: Out<CUaddress_mode>, hTexRef: CUtexref, dim: i32) -> CuResult {
    let dim = index(dim)?;
    tell(pam, hTexRef, |texture| texture.addressMode[dim])
}

#[entry_point]
fn cuTexRefGetFilterMode(pfm: Out<CUfilter_mode>, hTexRef: CUtexref) -> CuResult {
    tell(pfm, hTexRef, |texture| texture.filterMode)
}

#[entry_point]
fn cuTexRefGetMipmapFilterMode(pfm: Out<CUfilter_mode>, hTexRef: CUtexref) -> CuResult {
    tell(pfm, hTexRef, |texture| texture.mipmapFilterMode)
}

#[entry_point]
fn cuTexRefGetMipmapLevelBias(pbias: Out<f32>, hTexRef: CUtexref) -> CuResult {
    tell(pbias, hTexRef, |texture| texture.mipmapLevelBias)
}

#[entry_point]
fn cuTexRefGetMipmapLevelClamp(
    pminMipmapLevelClamp: Out<f32>,
    pmaxMipmapLevelClamp: Out<f32>,
    hTexRef: CUtexref,
) -> CuResult {
    pmaxMipmapLevelClamp.check()?;
    tell(pminMipmapLevelClamp, hTexRef, |texture| texture.minMipmapLevelClamp)?;
    tell(pmaxMipmapLevelClamp, hTexRef, |texture| texture.maxMipmapLevelClamp)
}

#[entry_point]
fn cuTexRefGetMaxAnisotropy(pmaxAniso: Out<i32>, hTexRef: CUtexref) -> CuResult {
    tell(pmaxAniso, hTexRef, |texture| texture.maxAnisotropy as i32)
}

#[entry_point]
fn cuTexRefGetBorderColor(pBorderColor: Array<f32>, hTexRef: CUtexref) -> CuResult {
    let colour = find(hTexRef)?.state().texture.borderColor;
    colour.iter().enumerate().try_for_each(|(index, value)| Ok(pBorderColor.set(index, *value)?))
}

#[entry_point]
fn cuTexRefGetFlags(pFlags: Out<u32>, hTexRef: CUtexref) -> CuResult {
    tell(pFlags, hTexRef, |texture| texture.flags)
}
