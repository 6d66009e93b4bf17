// tag=value lists (RFC 6376 section 3.2): the form of DKIM-Signature fields and of key records.

import InternetMessage
import Support

/// A parsed tag list. Names are case-sensitive; a name that occurs twice makes
/// the whole list invalid.
struct DKIMTagList {
    struct Tag {
        /// Without the white space around it.
        let value: ArraySlice<UInt8>
        /// Everything between `=` and the next `;` (or the end), white space included, as
        /// offsets into the parsed array.
        let range: Range<Int>
    }

    private struct Place {
        let name: Range<Int>
        let range: Range<Int>
    }

    private let bytes: ArraySlice<UInt8>
    /// In order of appearance.
    private var places: [Place] = []
    /// The names, once there are so many that searches through `places` would take more than linear
    /// time.
    private var seen: Set<ArraySlice<UInt8>> = []
    private static let fewNames = 16

    /// Takes linear time. Non-ASCII octets are allowed in values (RFC 8616); control characters
    /// other than folds are not.
    init(_ bytes: ArraySlice<UInt8>) throws(DKIMSyntaxError) {
        self.bytes = bytes
        try Self.checkFolding(bytes)
        places.reserveCapacity(Self.fewNames)
        var start = bytes.startIndex
        while start < bytes.endIndex {
            let end = bytes[start...].firstIndex(of: UInt8(ascii: ";")) ?? bytes.endIndex
            if bytes[start..<end].allSatisfy(DKIMSyntax.isFolding) {
                // Only the last semicolon may have nothing after it.
                guard end == bytes.endIndex, !places.isEmpty else {
                    throw DKIMSyntaxError("an empty tag")
                }
                break
            }
            try append(start..<end)
            start = end + 1
        }
        guard !places.isEmpty else { throw DKIMSyntaxError("no tags") }
    }

    /// The names in order of appearance.
    var names: [String] { places.map { String(decoding: bytes[$0.name], as: UTF8.self) } }

    /// Whether the first tag has this name.
    func begins(with name: StaticString) -> Bool {
        places.first.map { DKIMSyntax.equals(bytes[$0.name], name) } ?? false
    }

    /// The tag of this name.
    subscript(name: StaticString) -> Tag? {
        for place in places
        where place.name.count == name.utf8CodeUnitCount
            && DKIMSyntax.equals(bytes[place.name], name)
        {
            return Tag(value: DKIMSyntax.trimmed(bytes[place.range]), range: place.range)
        }
        return nil
    }

    private mutating func append(_ specification: Range<Int>) throws(DKIMSyntaxError) {
        guard let equals = bytes[specification].firstIndex(of: UInt8(ascii: "=")) else {
            throw DKIMSyntaxError("a tag without =")
        }
        let name = DKIMSyntax.trimmed(bytes[specification.lowerBound..<equals])
        guard let first = name.first, first.isASCIILetter,
            name.allSatisfy({ $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "_") })
        else { throw DKIMSyntaxError("a malformed tag name") }
        guard isNew(name) else {
            // A long name in a reason does not help.
            throw DKIMSyntaxError(
                name.count <= 16
                    ? "the tag \(String(decoding: name, as: UTF8.self))= occurs twice"
                    : "a tag occurs twice")
        }
        places.append(Place(name: name.indices, range: (equals + 1)..<specification.upperBound))
    }

    private mutating func isNew(_ name: ArraySlice<UInt8>) -> Bool {
        guard places.count >= Self.fewNames else {
            return !places.contains {
                $0.name.count == name.count && bytes[$0.name].elementsEqual(name)
            }
        }
        if seen.isEmpty { seen = Set(places.map { bytes[$0.name] }) }
        return seen.insert(name).inserted
    }

    /// CR and LF only as CRLF followed by white space, and no other control characters.
    private static func checkFolding(_ bytes: ArraySlice<UInt8>) throws(DKIMSyntaxError) {
        if let reason = bytes.withUnsafeBufferPointer(objection) { throw DKIMSyntaxError(reason) }
    }

    private static func objection(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
        var index = bytes.firstControl()
        while index < bytes.count {
            guard bytes[index] == 0x0D else { return "a control character" }
            guard index + 2 < bytes.count, bytes[index + 1] == 0x0A,
                DKIMSyntax.isWhiteSpace(bytes[index + 2])
            else {
                return "a line end that folds nothing"
            }
            index = bytes.firstControl(from: index + 3)
        }
        return nil
    }
}
