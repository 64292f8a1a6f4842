//! Stream management: attributes.

use super::common::*;

fn value(bytes: &[u8]) -> CUstreamAttrValue {
    let mut value = CUstreamAttrValue { bytes: [0; 64] };
    value.bytes[..bytes.len()].copy_from_slice(bytes);
    value
}

fn ask(stream: CUstream, attribute: CUstreamAttrID) -> CUstreamAttrValue {
    let mut answer = value(&[0xee; 64]);
    cu!(cuStreamGetAttribute(stream, attribute, &mut answer));
    answer
}

pub fn attributes_are_kept_and_copied() {
    new_context();
    let (a, b) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    let policy = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
    let unset = ask(a, policy);
    assert_eq!(unset.word(0), u32::MAX, "none of the policies");
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(a, policy, &unset));
    for wanted in [CU_SYNC_POLICY_SPIN, CU_SYNC_POLICY_YIELD, CU_SYNC_POLICY_BLOCKING_SYNC] {
        cu!(cuStreamSetAttribute(a, policy, &value(&wanted.0.to_ne_bytes())));
        assert_eq!(ask(a, policy).word(0), wanted.0);
    }
    assert_eq!(ask(b, policy).word(0), unset.word(0));

    let window = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    let p = alloc(4096);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&p.0.to_ne_bytes());
    bytes[8..16].copy_from_slice(&4096u64.to_ne_bytes());
    bytes[16..20].copy_from_slice(&0.5f32.to_ne_bytes());
    bytes[20..24].copy_from_slice(&CU_ACCESS_PROPERTY_PERSISTING.0.to_ne_bytes());
    bytes[24..28].copy_from_slice(&CU_ACCESS_PROPERTY_STREAMING.0.to_ne_bytes());
    cu!(cuStreamSetAttribute(a, window, &value(&bytes)));
    assert_eq!(ask(a, window).bytes[..28], bytes[..28]);

    cu!(cuStreamCopyAttributes(b, a));
    assert_eq!(ask(b, window).bytes[..28], bytes[..28]);
    assert_eq!(ask(b, policy).word(0), CU_SYNC_POLICY_BLOCKING_SYNC.0);
    let mut answer = value(&[]);
    let c = stream(CU_STREAM_NON_BLOCKING);
    cu!(cuStreamCopyAttributes_ptsz(c, a); cuStreamGetAttribute_ptsz(c, policy, &mut answer));
    assert_eq!(answer.word(0), CU_SYNC_POLICY_BLOCKING_SYNC.0);
    cu!(cuStreamSetAttribute_ptsz(c, policy, &value(&CU_SYNC_POLICY_AUTO.0.to_ne_bytes())));
    assert_eq!(ask(c, policy).word(0), CU_SYNC_POLICY_AUTO.0);
}

pub fn priority_and_domain_are_attributes() {
    new_context();
    let mut s = CUstream::NULL;
    let (mut least, mut greatest, mut priority) = (9, 9, 9);
    cu!(
        cuCtxGetStreamPriorityRange(&mut least, &mut greatest);
        cuStreamCreateWithPriority(&mut s, CU_STREAM_NON_BLOCKING, greatest);
    );
    assert_eq!(ask(s, CU_LAUNCH_ATTRIBUTE_PRIORITY).word(0) as i32, greatest);
    cu!(
        cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value(&least.to_ne_bytes()));
        cuStreamGetPriority(s, &mut priority);
    );
    assert_eq!(priority, least);
    let domain = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    assert_eq!(ask(s, domain).word(0), CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT);
    cu!(cuStreamSetAttribute(s, domain, &value(&CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE.to_ne_bytes())));
    assert_eq!(ask(s, domain).word(0), CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
    let map = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP;
    assert_eq!(ask(s, map).bytes[..2], [0, 1], "remote accesses have a domain of their own");
    let domains = attribute(CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT) as u8;
    for both in [[0, 0], [domains - 1, 0]] {
        cu!(cuStreamSetAttribute(s, map, &value(&both)));
        assert_eq!(ask(s, map).bytes[..2], both);
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(s, map, &value(&[0, domains])));
}

pub fn wrong_attributes_are_refused() {
    new_context();
    let s = stream(CU_STREAM_DEFAULT);
    let mut answer = value(&[]);
    let policy = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
    for none in
        [CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CUlaunchAttributeID(99)]
    {
        fails!(CUDA_ERROR_INVALID_VALUE, cuStreamGetAttribute(s, none, &mut answer));
        fails!(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(s, none, &answer));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(s, policy, &value(&99u32.to_ne_bytes())));
    let mut window = [0; 32];
    window[8..16].copy_from_slice(&u64::MAX.to_ne_bytes());
    window[16..20].copy_from_slice(&1f32.to_ne_bytes());
    let which = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(s, which, &value(&window)));
    window[8..16].copy_from_slice(&64u64.to_ne_bytes());
    window[16..20].copy_from_slice(&2f32.to_ne_bytes());
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(s, which, &value(&window)));
    if ours_only("a GPU driver follows null and handles that are none") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuStreamGetAttribute(s, policy, null_mut()));
        fails!(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(s, policy, null()));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamGetAttribute(CUstream(0x1234), policy, &mut answer));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamSetAttribute(CUstream(0x1234), policy, &answer));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamCopyAttributes(s, CUstream(0x1234)));
    }
    create_context();
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamCopyAttributes(stream(CU_STREAM_DEFAULT), s));
}
