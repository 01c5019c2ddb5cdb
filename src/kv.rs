//! The store over Workers KV. Bytes stay in the runtime's memory: they are hashed and sent there, and copied into ours only
//! to be parsed.

use std::cell::OnceCell;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use packferry_core::key::StorageKey;
use worker::js_sys::{Array, Date, Uint8Array, global};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{self, Blob, Response, ResponseInit};
use worker::{Delay, KvStore};

use crate::store::{Body, Bytes, CacheTime, Store, StoreFailure};

/// A value in the runtime's memory.
#[derive(Debug)]
pub(crate) struct KvBytes(Uint8Array);

impl Bytes for KvBytes {
    fn len(&self) -> usize {
        usize::try_from(self.0.length()).unwrap_or(usize::MAX)
    }

    fn copy(&self, range: Range<usize>) -> Vec<u8> {
        self.part(&range).to_vec()
    }
}

impl KvBytes {
    /// The same memory, from here to there; an end behind the last byte is the last byte.
    fn part(&self, range: &Range<usize>) -> Uint8Array {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        self.0.subarray(offset(range.start), offset(range.end))
    }
}

/// A checked value: the runtime sends a `Blob` without copying it for every response, as it would an array.
#[derive(Debug, Clone)]
pub(crate) struct KvBody {
    pub(crate) blob: Blob,
    length: usize,
}

impl Body for KvBody {
    fn len(&self) -> usize {
        self.length
    }
}

/// What the runtime makes of a finished answer, once.
#[derive(Debug, Default)]
pub(crate) struct Dress {
    /// Status and headers of the whole answer.
    pub(crate) whole: OnceCell<ResponseInit>,
    /// Status and headers for a client that has it.
    pub(crate) not_modified: OnceCell<ResponseInit>,
    /// A body of text, so that it need not be decoded again.
    pub(crate) text: OnceCell<Blob>,
}

/// Workers KV. Without a binding every read fails.
#[derive(Debug)]
pub(crate) struct Kv(pub(crate) Option<KvStore>);

/// Seconds for [`CacheTime::Forever`]: a year.
const YEAR: u64 = 31_536_000;
/// Seconds after which a read is given up.
const READ_SECONDS: u64 = 10;
/// Seconds for [`CacheTime::Least`]: KV takes no less.
const LEAST: u64 = 30;

impl Store for Kv {
    type Bytes = KvBytes;
    type Body = KvBody;
    type Dress = Dress;

    async fn read(&self, key: &StorageKey, cache: CacheTime) -> Result<Option<KvBytes>, StoreFailure> {
        let kv = self
            .0
            .as_ref()
            .ok_or_else(|| StoreFailure("no binding named KV".to_owned()))?;
        let seconds = match cache {
            CacheTime::Forever => YEAR,
            CacheTime::Least => LEAST,
        };
        in_time(async {
            let stream = kv.get(&key.to_string()).cache_ttl(seconds).stream().await;
            let Some(stream) = stream.map_err(|error| StoreFailure(error.to_string()))? else {
                return Ok(None);
            };
            // The runtime collects the stream natively; read chunk by chunk from here, each would be copied.
            let response = Response::new_with_opt_readable_stream(Some(&stream)).map_err(failure)?;
            let buffer = JsFuture::from(response.array_buffer().map_err(failure)?).await;
            Ok(Some(KvBytes(Uint8Array::new(&buffer.map_err(failure)?))))
        })
        .await
    }

    async fn sha256(&self, bytes: &KvBytes, range: Range<usize>) -> Result<[u8; 32], StoreFailure> {
        let crypto = global()
            .unchecked_into::<web_sys::WorkerGlobalScope>()
            .crypto()
            .map_err(failure)?;
        let digest = crypto
            .subtle()
            .digest_with_str_and_buffer_source("SHA-256", &bytes.part(&range));
        let digest = JsFuture::from(digest.map_err(failure)?).await.map_err(failure)?;
        let bytes = Uint8Array::new(&digest).to_vec();
        bytes
            .try_into()
            .map_err(|_| StoreFailure("the runtime gave no SHA-256".to_owned()))
    }

    fn keep(&self, bytes: KvBytes) -> Result<KvBody, StoreFailure> {
        let length = bytes.len();
        let blob = Blob::new_with_u8_array_sequence(&Array::of1(&bytes.0)).map_err(failure)?;
        Ok(KvBody { blob, length })
    }

    async fn pause(&self, milliseconds: u32) {
        Delay::from(Duration::from_millis(milliseconds.into())).await;
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "milliseconds since 1970 are a positive integer below 2^53"
    )]
    fn now(&self) -> u64 {
        Date::now() as u64
    }
}

/// What `read` gives, or a failure where it gives nothing in time: KV sets no bound of its own.
async fn in_time<T>(read: impl Future<Output = Result<T, StoreFailure>>) -> Result<T, StoreFailure> {
    let mut read = pin!(read);
    let mut limit = pin!(Delay::from(Duration::from_secs(READ_SECONDS)));
    poll_fn(|context| match read.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(result),
        Poll::Pending => {
            let late = |()| Err(StoreFailure(format!("no answer within {READ_SECONDS} seconds")));
            limit.as_mut().poll(context).map(late)
        }
    })
    .await
}

fn failure(error: JsValue) -> StoreFailure {
    StoreFailure(format!("{error:?}"))
}
