// Header canonicalization (RFC 6376 sections 3.4.1 and 3.4.2) and the digest over the signed fields (section 3.7).

import InternetMessage
import MailCrypto

extension DKIMCanonicalization {
    /// Appends the canonical form of one field, without the CRLF that ends it.
    /// - Parameter removed: offsets that are left out, as the value of `b=` is; empty for none.
    func append(_ field: HeaderField, without removed: Range<Int> = 0..<0, to output: inout [UInt8]) {
        let bytes = field.bytes
        switch self {
        case .simple:
            output.append(contentsOf: bytes[..<removed.lowerBound])
            output.append(contentsOf: bytes[removed.upperBound...])
        case .relaxed:
            output.append(contentsOf: bytes[..<field.nameLength].lazy.map(\.asciiLowercased))
            output.append(UInt8(ascii: ":"))
            let start = output.count
            var space = false
            bytes.withUnsafeBufferPointer { bytes in
                var index = min(field.valueStart, bytes.count)
                while index < bytes.count {
                    if index == removed.lowerBound, !removed.isEmpty {
                        index = removed.upperBound
                        continue
                    }
                    let octet = bytes[index]
                    index += 1
                    if DKIMSyntax.isWhiteSpace(octet) {
                        space = true
                    } else if octet == 0x0D, index < bytes.count, bytes[index] == 0x0A {
                        index += 1
                    } else {
                        if space, output.count > start { output.append(0x20) }
                        space = false
                        output.append(octet)
                    }
                }
            }
        }
    }
}

/// Finds the fields that a signature names: for each time a name occurs, the next field of it from the bottom up (section 5.4.2).
struct DKIMSignedFields {
    private let fields: [HeaderField]
    /// Positions by name in lower case, top to bottom.
    private var positions: [String: [Int]] = [:]

    init(_ header: HeaderSection) {
        fields = header.fields
        for (index, field) in fields.enumerated() where field.nameLength > 0 {
            positions[String(decoding: field.bytes[..<field.nameLength].map(\.asciiLowercased), as: UTF8.self), default: []]
                .append(index)
        }
    }

    /// How many fields of this name (lower case) there are.
    func count(_ name: String) -> Int { positions[name]?.count ?? 0 }

    /// SHA-256 over the named fields and, last and without CRLF, the signature field with an empty `b=`.
    /// - Parameters:
    ///   - own: position of the signature field itself, which its own `h=` cannot name; nil while it is being made.
    func digest(
        names: [String], canonicalization: DKIMCanonicalization, signatureField: HeaderField, signatureRange: Range<Int>,
        own: Int?
    ) -> [UInt8] {
        var used: [String: Int] = [:]
        let hash = SHA256()
        var buffer = [UInt8]()
        buffer.reserveCapacity(4096)
        for name in names {
            guard let found = positions[name] else { continue }
            var next = used[name] ?? found.count - 1
            if next >= 0, found[next] == own { next -= 1 }
            used[name] = next - 1
            guard next >= 0 else { continue }
            canonicalization.append(fields[found[next]], to: &buffer)
            buffer.append(0x0D)
            buffer.append(0x0A)
            if buffer.count >= 65536 {
                hash.update(buffer)
                buffer.removeAll(keepingCapacity: true)
            }
        }
        canonicalization.append(signatureField, without: signatureRange, to: &buffer)
        hash.update(buffer)
        return hash.finalize()
    }
}
