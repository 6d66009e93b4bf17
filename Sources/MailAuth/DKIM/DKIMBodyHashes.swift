// Body hashes (RFC 6376 section 3.7), computed while the body arrives. Signatures that need the
// same hash share it.

import MailCrypto

/// All body hashes that the signatures of one message need: at most one canonicalization of each
/// kind, and one SHA-256 for each different length. For one thread at a time.
final class DKIMBodyHashes {
    struct Request: Hashable {
        let canonicalization: DKIMCanonicalization
        /// `l=` in octets; nil for the whole body.
        let length: Int64?
    }

    struct Digest {
        let request: Request
        let sha256: [UInt8]
        /// Octets of the whole canonical body.
        let bodyLength: Int64
    }

    /// The results, one for each request.
    struct Digests {
        fileprivate(set) var values: [Digest] = []

        subscript(request: Request) -> Digest? { values.first { $0.request == request } }
    }

    private final class Sink {
        let hash = SHA256()
        var remaining: Int64
        init(_ length: Int64?) { remaining = length ?? .max }
    }

    /// One canonicalization and all hashes of its output.
    private final class Stream {
        var sinks: [(request: Request, sink: Sink)] = []
        var length: Int64 = 0

        func take(_ bytes: UnsafeRawBufferPointer) {
            length += Int64(bytes.count)
            for (_, sink) in sinks where sink.remaining > 0 {
                let count = min(sink.remaining, Int64(bytes.count))
                sink.hash.update(UnsafeRawBufferPointer(rebasing: bytes[..<Int(count)]))
                sink.remaining -= count
            }
        }
    }

    private var streams: [(stream: Stream, canonicalizer: DKIMBodyCanonicalizer)] = []

    /// - Parameter requests: a few; may contain duplicates.
    init(_ requests: [Request]) {
        for request in requests {
            let known = streams.first { $0.canonicalizer.kind == request.canonicalization }?.stream
            let stream = known ?? Stream()
            if known == nil {
                streams.append(
                    (stream, DKIMBodyCanonicalizer(request.canonicalization) { stream.take($0) }))
            }
            if !stream.sinks.contains(where: { $0.request == request }) {
                stream.sinks.append((request, Sink(request.length)))
            }
        }
    }

    func update(_ chunk: UnsafeRawBufferPointer) {
        for (_, canonicalizer) in streams { canonicalizer.update(chunk) }
    }

    /// Ends the body. Call it once.
    func finish() -> Digests {
        var digests = Digests()
        for (stream, canonicalizer) in streams {
            canonicalizer.finish()
            for (request, sink) in stream.sinks {
                digests.values.append(
                    Digest(
                        request: request, sha256: sink.hash.finalize(), bodyLength: stream.length))
            }
        }
        return digests
    }
}
