//! Stream management: attributes.

use crate::error::CuResult;
use crate::streams::find;
use cuda_abi::args::{In, Out};
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::stream::{AccessProperty, AccessWindow};
use device::{Scheduling, Stream, limits};
use entry_macros::entry_point;
use std::ffi::c_void;

#[entry_point(ptsz)]
fn cuStreamGetAttribute(
    default: DefaultStream,
    hStream: CUstream,
    attr: CUstreamAttrID,
    value_out: Out<CUstreamAttrValue>,
) -> CuResult {
    value_out.check()?;
    value_out.set(get(&*find(hStream, default)?, attr)?)?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamSetAttribute(
    default: DefaultStream,
    hStream: CUstream,
    attr: CUstreamAttrID,
    value: In<CUstreamAttrValue>,
) -> CuResult {
    let value = value.get()?;
    set(&*find(hStream, default)?, attr, &value)
}

/// Both streams are of one context.
#[entry_point(ptsz)]
fn cuStreamCopyAttributes(default: DefaultStream, dst: CUstream, src: CUstream) -> CuResult {
    let (to, from) = (find(dst, default)?, find(src, default)?);
    if to.context()?.id() != from.context()?.id() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    to.set_settings(from.settings())?;
    to.set_priority(from.priority())?;
    Ok(())
}

/// What a GPU's driver tells of a policy that has not been set. It cannot be set.
const POLICY_UNSET: u32 = u32::MAX;

fn get(stream: &Stream, attribute: CUstreamAttrID) -> CuResult<CUstreamAttrValue> {
    let settings = stream.settings();
    let mut value = CUstreamAttrValue { bytes: [0; 64] };
    match attribute {
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => {
            let AccessWindow { address, bytes, hit_ratio, hit, miss } = settings.window;
            write(&mut value, 0, &address.to_ne_bytes());
            write(&mut value, 8, &bytes.to_ne_bytes());
            write(&mut value, 16, &hit_ratio.to_ne_bytes());
            write(&mut value, 20, &property_code(hit).0.to_ne_bytes());
            write(&mut value, 24, &property_code(miss).0.to_ne_bytes());
        }
        CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => {
            let policy = settings.scheduling.map_or(POLICY_UNSET, |scheduling| match scheduling {
                Scheduling::Auto => CU_SYNC_POLICY_AUTO.0,
                Scheduling::Spin => CU_SYNC_POLICY_SPIN.0,
                Scheduling::Yield => CU_SYNC_POLICY_YIELD.0,
                Scheduling::BlockingSync => CU_SYNC_POLICY_BLOCKING_SYNC.0,
            });
            write(&mut value, 0, &policy.to_ne_bytes());
        }
        CU_LAUNCH_ATTRIBUTE_PRIORITY => write(&mut value, 0, &stream.priority().to_ne_bytes()),
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => write(&mut value, 0, &settings.domains),
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => {
            write(&mut value, 0, &u32::from(settings.is_remote).to_ne_bytes());
        }
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
    Ok(value)
}

fn set(stream: &Stream, attribute: CUstreamAttrID, value: &CUstreamAttrValue) -> CuResult {
    let mut settings = stream.settings();
    match attribute {
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => settings.window = window(value)?,
        CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => {
            settings.scheduling = Some(match CUsynchronizationPolicy(value.word(0)) {
                CU_SYNC_POLICY_AUTO => Scheduling::Auto,
                CU_SYNC_POLICY_SPIN => Scheduling::Spin,
                CU_SYNC_POLICY_YIELD => Scheduling::Yield,
                CU_SYNC_POLICY_BLOCKING_SYNC => Scheduling::BlockingSync,
                _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
            });
        }
        CU_LAUNCH_ATTRIBUTE_PRIORITY => return Ok(stream.set_priority(value.word(0) as i32)?),
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => {
            let domains = [value.bytes[0], value.bytes[1]];
            // Domains are counted from 0.
            if domains.iter().any(|domain| u32::from(*domain) >= limits::SYNC_DOMAINS) {
                return Err(CUDA_ERROR_INVALID_VALUE.into());
            }
            settings.domains = domains;
        }
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => {
            settings.is_remote = match value.word(0) {
                CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT => false,
                CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE => true,
                _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
            };
        }
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
    stream.set_settings(settings)?;
    Ok(())
}

/// A window, if it is not too wide and what is expected of it can be.
fn window(value: &CUstreamAttrValue) -> CuResult<AccessWindow> {
    // SAFETY: the member is plain numbers and lies at the beginning of the union's 64 bytes.
    let window = unsafe { value.bytes.as_ptr().cast::<CUaccessPolicyWindow>().read_unaligned() };
    let (hit, miss) = (read_property(window.hitProp)?, read_property(window.missProp)?);
    if !is_possible(&window) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    Ok(AccessWindow {
        address: window.base_ptr.cast::<c_void>() as u64,
        bytes: window.num_bytes as u64,
        hit_ratio: window.hitRatio,
        hit,
        miss,
    })
}

/// Whether a window is no larger than there are, no more of it than all is to be accessed in one way, and what misses is not to persist.
pub fn is_possible(window: &CUaccessPolicyWindow) -> bool {
    window.num_bytes as u64 <= limits::ACCESS_WINDOW
        && (0.0..=1.0).contains(&window.hitRatio)
        && window.missProp != CU_ACCESS_PROPERTY_PERSISTING
}

fn property_code(property: AccessProperty) -> CUaccessProperty {
    match property {
        AccessProperty::Normal => CU_ACCESS_PROPERTY_NORMAL,
        AccessProperty::Streaming => CU_ACCESS_PROPERTY_STREAMING,
        AccessProperty::Persisting => CU_ACCESS_PROPERTY_PERSISTING,
    }
}

fn read_property(code: CUaccessProperty) -> CuResult<AccessProperty> {
    match code {
        CU_ACCESS_PROPERTY_NORMAL => Ok(AccessProperty::Normal),
        CU_ACCESS_PROPERTY_STREAMING => Ok(AccessProperty::Streaming),
        CU_ACCESS_PROPERTY_PERSISTING => Ok(AccessProperty::Persisting),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

fn write(value: &mut CUstreamAttrValue, at: usize, bytes: &[u8]) {
    value.bytes[at..at + bytes.len()].copy_from_slice(bytes);
}
