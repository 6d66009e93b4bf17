// Signs everything that Postern sends (RFC 6376 section 5).

import InternetMessage
import MailCrypto
import Support

/// The hash of one body, computed while the body arrives, for any number of signers. For one thread
/// at a time.
package final class DKIMBodyHasher {
    private static let request = DKIMBodyHashes.Request(
        canonicalization: DKIMSigner.canonicalization, length: nil)
    private let hashes = DKIMBodyHashes([request])

    package init() {}

    /// Takes the next octets of the body, line ends as CRLF, split anywhere.
    package func update(body: UnsafeRawBufferPointer) { hashes.update(body) }

    /// Takes the next octets of the body, line ends as CRLF, split anywhere.
    package func update(body: [UInt8]) { body.withUnsafeBytes { hashes.update($0) } }

    /// Ends the body. Call it once.
    package func finish() -> DKIMBodyHash {
        DKIMBodyHash(sha256: hashes.finish()[Self.request]?.sha256 ?? SHA256.hash([UInt8]()))
    }
}

/// SHA-256 of a body in relaxed canonical form.
package struct DKIMBodyHash: Sendable, Hashable {
    let sha256: [UInt8]
}

/// Signs for one domain with one key. May be shared between threads.
package struct DKIMSigner: Sendable {
    /// A domain or selector that cannot be in a signature.
    package struct InvalidName: Error, Sendable, Hashable {
        /// The name, and the reason why it is not allowed.
        package let reason: String
    }

    /// relaxed/relaxed. Changes that servers on the way make to white space and folds do not break
    /// it, and every change that a reader could see does.
    static let canonicalization = DKIMCanonicalization.relaxed

    /// Each is signed one more time than it occurs, so that no server can add one on the way (RFC
    /// 6376 section 5.4). They show author, recipients and subject, or decide where answers go and
    /// how the body is read. RFC 8058 section 4 requires the others.
    package static let signedNames = [
        "From", "Sender", "Reply-To", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To",
        "References", "MIME-Version",
        "Content-Type", "Content-Transfer-Encoding", "List-Unsubscribe", "List-Unsubscribe-Post",
        "List-Id", "Auto-Submitted",
    ]

    /// Each is signed as often as it occurs. A service on the way may add its own above ours
    /// (Amazon SES adds a Feedback-ID), and our signature stays valid. RFC 9477 section 3.1 and
    /// Google require the signature.
    package static let signedIfPresent = ["Feedback-ID", "CFBL-Address"]

    private static let signedNameList = DKIMNameList(signedNames + signedIfPresent)
    /// Each name with a colon after it, as in `h=`, one after the other.
    private static let signedNameText = Array(
        (signedNames + signedIfPresent).map { $0 + ":" }.joined().utf8)

    /// `d=`, lower case.
    package let domain: String
    /// `s=`, lower case.
    package let selector: String
    private let key: DKIMSigningKey
    /// The field's value up to `s=`, which is the same for every message.
    private let start: DKIMFieldText

    /// - Throws: `InvalidName`. Domain and selector are ASCII (A-labels).
    package init(domain: String, selector: String, key: DKIMSigningKey) throws {
        guard let checkedDomain = DKIMSyntax.domain(Array(domain.utf8)[...]) else {
            throw InvalidName(reason: "the signing domain is not a valid domain name in ASCII form")
        }
        guard let checkedSelector = DKIMSyntax.domain(Array(selector.utf8)[...]),
            checkedSelector.utf8.count + "._domainkey.".utf8.count + checkedDomain.utf8.count
                <= DomainName.maximumQueryLength
        else {
            throw InvalidName(
                reason: "the selector is not a valid domain label, or too long with the domain")
        }
        self.domain = checkedDomain
        self.selector = checkedSelector
        self.key = key
        var start = DKIMFieldText(" v=1; a=\(key.algorithm.name); c=relaxed/relaxed;")
        start.append("d=\(checkedDomain);")
        start.append("s=\(checkedSelector);")
        self.start = start
    }

    package var algorithm: DKIMAlgorithm { key.algorithm }

    /// The DKIM-Signature field, to insert above all others. Several signers may sign the same
    /// header one after the other, as no signature covers another.
    /// - Parameters:
    ///   - header: the fields as they will be sent, folds as CRLF.
    ///   - now: seconds since 1970, for `t=`.
    /// - Throws: `CryptoError` if libcrypto fails to sign.
    package func sign(
        header: HeaderSection, bodyHash: DKIMBodyHash, now: Int64
    ) throws -> HeaderField {
        let fields = DKIMSignedFields(header)
        var text = start
        text.reserve(1_024)
        text.append("t=\(max(0, now));")
        text.begin("h=")
        let (chosen, counts) = fields.all(Self.signedNameList)
        Self.signedNameText.withUnsafeBufferPointer { names in
            var rest = names[...]
            for (index, count) in counts.enumerated() {
                guard let colon = rest.firstIndex(of: UInt8(ascii: ":")) else { break }
                let part = UnsafeBufferPointer(rebasing: rest[...colon])
                let times = index < Self.signedNames.count ? count + 1 : count
                for _ in 0..<times { text.append(part: part) }
                rest = rest[(colon + 1)...]
            }
        }
        text.endList()
        text.begin("bh=")
        (Base64.encodeUnbroken(bodyHash.sha256) + [UInt8(ascii: ";")]).withUnsafeBufferPointer {
            text.append(part: $0)
        }
        text.begin("b=")
        let unsigned = HeaderField(name: "DKIM-Signature", rawValue: text.bytes)
        let digest = fields.digest(
            chosen, canonicalization: Self.canonicalization, signatureField: unsigned,
            signatureRange: unsigned.bytes.count..<unsigned.bytes.count)
        text.continueSplit(Base64.encodeUnbroken(try key.sign(digest: digest)))
        return HeaderField(name: "DKIM-Signature", rawValue: text.bytes)
    }
}

/// The value of a DKIM-Signature field while it is being written, folded in places that the grammar
/// allows.
private struct DKIMFieldText: Sendable {
    /// Longest line without CRLF (RFC 5322 section 2.1.1 recommends 78); only a
    /// longer domain exceeds it.
    private static let lineLength = 77

    private(set) var bytes: [UInt8]
    private var column: Int

    init(_ start: String) {
        bytes = Array(start.utf8)
        column = "DKIM-Signature:".utf8.count + bytes.count
    }

    mutating func reserve(_ octets: Int) { bytes.reserveCapacity(octets) }

    private mutating func fold() {
        bytes.append(0x0D)
        bytes.append(0x0A)
        bytes.append(0x20)
        column = 1
    }

    /// A tag in one piece, after a space or a fold.
    mutating func append(_ tag: String) {
        if column + 1 + tag.utf8.count > Self.lineLength {
            fold()
        } else {
            bytes.append(0x20)
            column += 1
        }
        bytes += tag.utf8
        column += tag.utf8.count
    }

    /// Begins a tag on a new line.
    mutating func begin(_ tag: String) {
        fold()
        bytes += tag.utf8
        column += tag.utf8.count
    }

    /// Part of the current tag; a fold may come before it.
    mutating func append(part: UnsafeBufferPointer<UInt8>) {
        if column + part.count > Self.lineLength { foldWithin() }
        bytes += part
        column += part.count
    }

    /// Replaces the colon after the last part with a semicolon.
    mutating func endList() { bytes[bytes.count - 1] = UInt8(ascii: ";") }

    /// Base64, which may be folded anywhere.
    mutating func continueSplit(_ text: [UInt8]) {
        var rest = text[...]
        while !rest.isEmpty {
            if column >= Self.lineLength { foldWithin() }
            let piece = rest.prefix(Self.lineLength - column)
            bytes += piece
            column += piece.count
            rest = rest[piece.endIndex...]
        }
    }

    private mutating func foldWithin() {
        fold()
        bytes.append(0x20)
        column += 1
    }
}
