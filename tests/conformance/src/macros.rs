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

/// A call of either API that must give this code.
macro_rules! fails {
    ($code:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let code = $code;
        // SAFETY: the test passes what the manual asks for, or what the library must notice.
        let answer = unsafe { $name($($argument),*) };
        assert_eq!(answer, code, "{}", stringify!($name($($argument),*)))
    }};
}
