// Header canonicalization (RFC 6376 sections 3.4.1 and 3.4.2) and the digest over the signed
// fields (section 3.7).

import InternetMessage
import MailCrypto

extension DKIMCanonicalization {
    /// Appends the canonical form of one field, without the CRLF that ends it.
    /// - Parameter removed: offsets to leave out, such as the value of `b=`; empty for none.
    func append(_ field: HeaderField, without removed: Range<Int> = 0..<0, to output: inout [UInt8])
    {
        output += [UInt8](unsafeUninitializedCapacity: Self.bound(field)) { buffer, count in
            guard let base = buffer.baseAddress else { return }
            count = write(field, without: removed, to: base)
        }
    }

    /// The maximum length of the field's canonical form. No octet becomes two, but a field without
    /// a colon gets one.
    static func bound(_ field: HeaderField) -> Int { field.bytes.count + 1 }

    /// Writes the canonical form to memory of `bound` octets, and returns its length.
    func write(
        _ field: HeaderField, without removed: Range<Int> = 0..<0,
        to output: UnsafeMutablePointer<UInt8>
    ) -> Int {
        field.bytes.withUnsafeBufferPointer { bytes in
            switch self {
            case .simple:
                guard let base = bytes.baseAddress else { return 0 }
                output.update(from: base, count: removed.lowerBound)
                (output + removed.lowerBound).update(
                    from: base + removed.upperBound, count: bytes.count - removed.upperBound)
                return bytes.count - removed.count
            case .relaxed:
                for index in 0..<field.nameLength { output[index] = bytes[index].asciiLowercased }
                output[field.nameLength] = UInt8(ascii: ":")
                let start = field.nameLength + 1
                let head = removed.isEmpty ? bytes.count : max(removed.lowerBound, field.valueStart)
                var state = Relaxation(output: output, start: start, count: start)
                state.take(bytes, from: field.valueStart, to: head)
                if !removed.isEmpty {
                    state.take(
                        bytes, from: max(removed.upperBound, field.valueStart), to: bytes.count)
                }
                return state.count
            }
        }
    }

    /// The relaxed form of a value while it is being written.
    private struct Relaxation {
        let output: UnsafeMutablePointer<UInt8>
        let start: Int
        var count: Int
        private var isSpaced = false

        init(output: UnsafeMutablePointer<UInt8>, start: Int, count: Int) {
            self.output = output
            self.start = start
            self.count = count
        }

        mutating func take(_ bytes: UnsafeBufferPointer<UInt8>, from lower: Int, to upper: Int) {
            var index = lower
            while index < upper {
                let octet = bytes[index]
                index += 1
                // Most octets are within words.
                if octet > 0x20, !isSpaced {
                    output[count] = octet
                    count += 1
                } else if DKIMSyntax.isWhiteSpace(octet) {
                    isSpaced = true
                } else if octet == 0x0D, index < bytes.count, bytes[index] == 0x0A {
                    index += 1
                } else {
                    if isSpaced, count > start {
                        output[count] = 0x20
                        count += 1
                    }
                    isSpaced = false
                    output[count] = octet
                    count += 1
                }
            }
        }
    }
}

/// Field names one after the other, as in `h=`.
struct DKIMNameList: Sendable {
    /// In lower case.
    private let octets: [UInt8]
    private let ranges: [Range<Int>]

    init(_ names: [String]) {
        var octets: [UInt8] = []
        var ranges: [Range<Int>] = []
        for name in names {
            ranges.append(octets.count..<(octets.count + name.utf8.count))
            octets += name.utf8.map(\.asciiLowercased)
        }
        self.octets = octets
        self.ranges = ranges
    }

    /// Reads the value of `h=`: names of printable ASCII between colons, with white space around
    /// them; nil for anything else.
    init?(_ value: ArraySlice<UInt8>) {
        var octets: [UInt8] = []
        var ranges: [Range<Int>] = []
        octets.reserveCapacity(value.count)
        ranges.reserveCapacity(value.count / 8)
        var start = 0
        // Whether white space follows the name.
        var isEnded = false
        for octet in value {
            if octet == UInt8(ascii: ":") {
                guard octets.count > start else { return nil }
                ranges.append(start..<octets.count)
                start = octets.count
                isEnded = false
            } else if DKIMSyntax.isFolding(octet) {
                isEnded = octets.count > start
            } else {
                guard !isEnded, octet > 0x20, octet < 0x7F else { return nil }
                octets.append(octet.asciiLowercased)
            }
        }
        guard octets.count > start else { return nil }
        ranges.append(start..<octets.count)
        self.octets = octets
        self.ranges = ranges
    }

    var texts: [String] { ranges.map { String(decoding: octets[$0], as: UTF8.self) } }

    /// The number of occurrences of a name (lower case).
    func count(_ name: StaticString) -> Int {
        ranges.reduce(0) {
            $0 + ($1.count == name.utf8CodeUnitCount && DKIMSyntax.equals(octets[$1], name) ? 1 : 0)
        }
    }

    fileprivate func forEach(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        octets.withUnsafeBufferPointer { octets in
            for range in ranges { body(UnsafeBufferPointer(rebasing: octets[range])) }
        }
    }
}

/// Finds the fields that a signature names. Each occurrence of a name means the next such field
/// from the bottom up (section 5.4.2).
struct DKIMSignedFields {
    private let fields: [HeaderField]
    private let index: FieldNameIndex

    init(_ header: HeaderSection) {
        fields = header.fields
        index = FieldNameIndex(fields)
    }

    /// The number of fields of this name (in any case).
    func count(_ name: StaticString) -> Int { name.withUTF8Buffer(count) }

    private func count(_ name: UnsafeBufferPointer<UInt8>) -> Int {
        index.number(of: name).map { index.ordinal(index.last($0)) } ?? 0
    }

    /// The fields that are signed, in the order of the names.
    /// - Parameter own: position of the signature field itself, which its own `h=` cannot name; nil
    ///   if it is not among the fields.
    func signed(_ names: DKIMNameList, own: Int?) -> [Int] {
        var chosen: [Int] = []
        // For each name, the next field to take, counted from 1. 0 means that the name has not
        // occurred; -1 means that no field is left.
        var next = [Int](repeating: 0, count: index.count)
        names.forEach { name in
            guard let number = index.number(of: name), next[number] >= 0 else { return }
            var position: Int? = next[number] == 0 ? index.last(number) : next[number] - 1
            if let own, position == own { position = index.above(own) }
            if let position { chosen.append(position) }
            next[number] = position.flatMap { index.above($0) }.map { $0 + 1 } ?? -1
        }
        return chosen
    }

    /// If all fields of each name are signed, the signed fields in the order of the names, and the
    /// number of fields of each name.
    func all(_ names: DKIMNameList) -> (chosen: [Int], counts: [Int]) {
        var (chosen, counts): ([Int], [Int]) = ([], [])
        chosen.reserveCapacity(fields.count)
        names.forEach { name in
            let before = chosen.count
            var position = index.number(of: name).map(index.last)
            while let found = position {
                chosen.append(found)
                position = index.above(found)
            }
            counts.append(chosen.count - before)
        }
        return (chosen, counts)
    }

    /// SHA-256 over fields and, last and without CRLF, the signature field with an empty `b=`.
    func digest(
        _ chosen: [Int], canonicalization: DKIMCanonicalization, signatureField: HeaderField,
        signatureRange: Range<Int>
    ) -> [UInt8] {
        let size = chosen.reduce(DKIMCanonicalization.bound(signatureField)) {
            $0 + DKIMCanonicalization.bound(fields[$1]) + 2
        }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: size) { buffer in
            guard let base = buffer.baseAddress else { return [] }
            var count = 0
            for position in chosen {
                count += canonicalization.write(fields[position], to: base + count)
                base[count] = 0x0D
                base[count + 1] = 0x0A
                count += 2
            }
            count += canonicalization.write(
                signatureField, without: signatureRange, to: base + count)
            return SHA256.hash(UnsafeRawBufferPointer(start: base, count: count))
        }
    }
}
