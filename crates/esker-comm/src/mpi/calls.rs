//! The functions of MPI that Esker calls, as a table filled at run time.

use std::ffi::{c_char, c_int, c_void};

use super::abi::{Handle, HandleType, Status};

/// The C type of an argument, where handles are of type `$H`.
macro_rules! c_type {
    ($H:ident, Handle) => { $H };
    ($H:ident, HandleOut) => { *mut $H };
    ($H:ident, $other:ident) => { rust_type!($other) };
}

/// The type of an argument on our side, where handles are of type [`Handle`].
macro_rules! rust_type {
    (Handle) => { Handle };
    (HandleOut) => { *mut Handle };
    (Int) => { c_int };
    (IntOut) => { *mut c_int };
    (Ints) => { *const c_int };
    (Buffer) => { *mut c_void };
    (Data) => { *const c_void };
    (StatusOut) => { *mut Status };
    (StatusIn) => { *const Status };
    (Text) => { *mut c_char };
    (Name) => { *const c_char };
    (Aints) => { *mut isize };
}

/// Turns an argument of ours into C's. A [`Handle`] lies in memory as C's does, so that the
/// address of one serves for both.
macro_rules! c_value {
    ($H:ident, Handle, $value:ident) => {
        $H::of($value)
    };
    ($H:ident, HandleOut, $value:ident) => {
        $value.cast::<$H>()
    };
    ($H:ident, $other:ident, $value:ident) => {
        $value
    };
}

macro_rules! functions {
    ($( $name:ident = $symbol:literal ( $($arg:ident : $kind:ident),* ); )*) => {
        /// The functions, whatever the type of handles. Each is MPI's of the same name.
        ///
        /// # Safety
        ///
        /// As for the function in C: pointers are valid for what the function does with them,
        /// for as long as the operation lasts, and MPI is in the state that it requires.
        #[allow(unsafe_code, clippy::too_many_arguments)]
        pub(super) trait Calls: Send + Sync {
            $( unsafe fn $name(&self, $($arg: rust_type!($kind)),*) -> c_int; )*
        }

        struct Table<H> {
            $( $name: unsafe extern "C" fn($(c_type!(H, $kind)),*) -> c_int, )*
        }

        #[allow(unsafe_code)]
        impl<H: HandleType> Calls for Table<H> {
            $( unsafe fn $name(&self, $($arg: rust_type!($kind)),*) -> c_int {
                // SAFETY: the caller keeps the function's own contract; H is this library's
                // type of handles, which is what identified it.
                unsafe { (self.$name)($(c_value!(H, $kind, $arg)),*) }
            } )*
        }

        /// The table of a library whose handles are of type `H`.
        ///
        /// # Safety
        ///
        /// `symbol` gives addresses of functions of an MPI library with such handles, which
        /// stays loaded for ever.
        #[allow(unsafe_code)]
        pub(super) unsafe fn load<H: HandleType + Send + Sync>(
            symbol: impl Fn(&str) -> Result<usize, String>,
        ) -> Result<Box<dyn Calls>, String> {
            Ok(Box::new(Table::<H> {
                $( $name: {
                    let address = symbol($symbol)? as *const c_void;
                    // SAFETY: the address is that of the function with this name, whose
                    // signature the MPI standard fixes.
                    unsafe {
                        std::mem::transmute::<
                            *const c_void,
                            unsafe extern "C" fn($(c_type!(H, $kind)),*) -> c_int,
                        >(address)
                    }
                }, )*
            }))
        }
    };
}

functions! {
    initialized = "MPI_Initialized"(flag: IntOut);
    finalized = "MPI_Finalized"(flag: IntOut);
    init_thread = "MPI_Init_thread"(argc: Buffer, argv: Buffer, required: Int, provided: IntOut);
    query_thread = "MPI_Query_thread"(provided: IntOut);
    finalize = "MPI_Finalize"();
    abort = "MPI_Abort"(comm: Handle, code: Int);
    error_string = "MPI_Error_string"(code: Int, text: Text, length: IntOut);

    comm_rank = "MPI_Comm_rank"(comm: Handle, rank: IntOut);
    comm_size = "MPI_Comm_size"(comm: Handle, size: IntOut);
    comm_test_inter = "MPI_Comm_test_inter"(comm: Handle, flag: IntOut);
    comm_get_attr = "MPI_Comm_get_attr"(comm: Handle, key: Int, value: Buffer, flag: IntOut);
    comm_set_attr = "MPI_Comm_set_attr"(comm: Handle, key: Int, value: Buffer);
    comm_create_keyval = "MPI_Comm_create_keyval"
        (copy: Buffer, delete: Buffer, key: IntOut, extra: Buffer);
    comm_set_errhandler = "MPI_Comm_set_errhandler"(comm: Handle, handler: Handle);
    comm_idup = "MPI_Comm_idup"(comm: Handle, new: HandleOut, request: HandleOut);
    comm_split = "MPI_Comm_split"(comm: Handle, colour: Int, key: Int, new: HandleOut);
    comm_split_type = "MPI_Comm_split_type"
        (comm: Handle, kind: Int, key: Int, info: Handle, new: HandleOut);
    comm_free = "MPI_Comm_free"(comm: HandleOut);

    isend = "MPI_Isend"(data: Data, count: Int, kind: Handle, to: Int, tag: Int, comm: Handle,
        request: HandleOut);
    issend = "MPI_Issend"(data: Data, count: Int, kind: Handle, to: Int, tag: Int, comm: Handle,
        request: HandleOut);
    irecv = "MPI_Irecv"(buffer: Buffer, count: Int, kind: Handle, from: Int, tag: Int,
        comm: Handle, request: HandleOut);
    improbe = "MPI_Improbe"(from: Int, tag: Int, comm: Handle, flag: IntOut, message: HandleOut,
        status: StatusOut);
    imrecv = "MPI_Imrecv"(buffer: Buffer, count: Int, kind: Handle, message: HandleOut,
        request: HandleOut);
    test = "MPI_Test"(request: HandleOut, flag: IntOut, status: StatusOut);
    wait = "MPI_Wait"(request: HandleOut, status: StatusOut);
    cancel = "MPI_Cancel"(request: HandleOut);
    get_count = "MPI_Get_count"(status: StatusIn, kind: Handle, count: IntOut);

    ibarrier = "MPI_Ibarrier"(comm: Handle, request: HandleOut);
    ibcast = "MPI_Ibcast"(buffer: Buffer, count: Int, kind: Handle, root: Int, comm: Handle,
        request: HandleOut);
    igather = "MPI_Igather"(data: Data, count: Int, kind: Handle, buffer: Buffer, each: Int,
        kind_received: Handle, root: Int, comm: Handle, request: HandleOut);
    iallgather = "MPI_Iallgather"(data: Data, count: Int, kind: Handle, buffer: Buffer,
        each: Int, kind_received: Handle, comm: Handle, request: HandleOut);
    iallgatherv = "MPI_Iallgatherv"(data: Data, count: Int, kind: Handle, buffer: Buffer,
        counts: Ints, places: Ints, kind_received: Handle, comm: Handle, request: HandleOut);
    ialltoall = "MPI_Ialltoall"(data: Data, count: Int, kind: Handle, buffer: Buffer, each: Int,
        kind_received: Handle, comm: Handle, request: HandleOut);
    iallreduce = "MPI_Iallreduce"(data: Data, buffer: Buffer, count: Int, kind: Handle,
        op: Handle, comm: Handle, request: HandleOut);
    ireduce_scatter_block = "MPI_Ireduce_scatter_block"(data: Data, buffer: Buffer, each: Int,
        kind: Handle, op: Handle, comm: Handle, request: HandleOut);
    info_create = "MPI_Info_create"(info: HandleOut);
    info_set = "MPI_Info_set"(info: Handle, key: Name, value: Name);
    info_get = "MPI_Info_get"(info: Handle, key: Name, length: Int, value: Text, flag: IntOut);
    info_get_nkeys = "MPI_Info_get_nkeys"(info: Handle, count: IntOut);
    info_get_nthkey = "MPI_Info_get_nthkey"(info: Handle, place: Int, key: Text);

    type_size = "MPI_Type_size"(kind: Handle, size: IntOut);
    type_get_extent = "MPI_Type_get_extent"(kind: Handle, low: Aints, extent: Aints);
    type_get_envelope = "MPI_Type_get_envelope"
        (kind: Handle, ints: IntOut, addresses: IntOut, kinds: IntOut, combiner: IntOut);
    type_get_contents = "MPI_Type_get_contents"(kind: Handle, ints: Int, addresses: Int,
        kinds: Int, int_list: IntOut, address_list: Aints, kind_list: HandleOut);
    type_dup = "MPI_Type_dup"(kind: Handle, new: HandleOut);
    type_free = "MPI_Type_free"(kind: HandleOut);
    pack = "MPI_Pack"(data: Data, count: Int, kind: Handle, buffer: Buffer, size: Int,
        place: IntOut, comm: Handle);
    unpack = "MPI_Unpack"(packed: Data, size: Int, place: IntOut, buffer: Buffer, count: Int,
        kind: Handle, comm: Handle);
    iexscan = "MPI_Iexscan"(data: Data, buffer: Buffer, count: Int, kind: Handle, op: Handle,
        comm: Handle, request: HandleOut);
}
