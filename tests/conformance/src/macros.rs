//! Calls with the answer they must give.

/// Calls of the Driver API that must succeed, one after another.
macro_rules! cu {
    ($($name:ident($($argument:expr),* $(,)?));+ $(;)?) => {{
        $(fails!(CUDA_SUCCESS, $name($($argument),*));)+
    }};
}

/// Calls of the Runtime API that must succeed, one after another.
macro_rules! cuda {
    ($($name:ident($($argument:expr),* $(,)?));+ $(;)?) => {{
        $(fails!(cudaSuccess, $name($($argument),*));)+
    }};
}

/// Calls of the management library that must succeed, one after another.
macro_rules! ml {
    ($($name:ident($($argument:expr),* $(,)?));+ $(;)?) => {{
        $(fails!(NVML_SUCCESS, $name($($argument),*));)+
    }};
}

/// A call of any API that must give this code.
macro_rules! fails {
    ($code:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let code = $code;
        // SAFETY: the test passes what the manual asks for, or what the library must notice.
        let answer = unsafe { $name($($argument),*) };
        assert_eq!(answer, code, "{}", stringify!($name($($argument),*)))
    }};
}
