// Writes parameters: tokens, quoted strings, and RFC 2231 if those are not enough.

import Support

extension MIMEParameters {
    /// Octets of one RFC 2231 section's value. With name and asterisks a line stays below 78.
    static let sectionLength = 50

    /// `; name=value` for each parameter, to be appended to a type. Without folds, which
    /// `HeaderField.folding` inserts at the spaces.
    package var serialized: String { list.reduce(into: "") { $0 += Self.write($1) } }

    private static func write(_ parameter: MIMEParameter) -> String {
        let name = String(
            decoding: parameter.name.octets.filter { $0.isTokenText && $0 != UInt8(ascii: "*") },
            as: UTF8.self)
        guard !name.isEmpty else { return "" }
        let isPrintable = parameter.bytes.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
        if isPrintable, parameter.language == nil, parameter.bytes.count <= sectionLength * 4,
            !EncodedWord.occurs(in: parameter.bytes[...])
        {
            if !parameter.bytes.isEmpty, parameter.bytes.allSatisfy(\.isTokenText) {
                return "; \(name)=\(String(decoding: parameter.bytes, as: UTF8.self))"
            }
            var quoted: [UInt8] = []
            for octet in parameter.bytes {
                if octet == UInt8(ascii: "\"") || octet == UInt8(ascii: "\\") {
                    quoted.append(UInt8(ascii: "\\"))
                }
                quoted.append(octet)
            }
            return "; \(name)=\"\(String(decoding: quoted, as: UTF8.self))\""
        }
        return writeExtended(parameter, name)
    }

    private static func writeExtended(_ parameter: MIMEParameter, _ name: String) -> String {
        let charset = parameter.charset ?? (parameter.bytes.isValidUTF8 ? "utf-8" : "")
        let head = charset + "'" + (parameter.language ?? "") + "'"
        var sections = [""]
        var length = head.utf8.count
        for octet in parameter.bytes {
            let piece = percentEncoded(octet)
            if length + piece.utf8.count > sectionLength {
                sections.append("")
                length = 0
            }
            sections[sections.count - 1] += piece
            length += piece.utf8.count
        }
        if sections.count == 1 { return "; \(name)*=\(head)\(sections[0])" }
        return sections.enumerated().reduce(into: "") { output, section in
            output +=
                "; \(name)*\(section.offset)*=\(section.offset == 0 ? head : "")\(section.element)"
        }
    }

    /// An attribute-char of RFC 2231 means itself; any other octet is `%XX`.
    private static func percentEncoded(_ octet: UInt8) -> String {
        let isPlain =
            octet.isTokenText && octet != UInt8(ascii: "*") && octet != UInt8(ascii: "'")
            && octet != UInt8(ascii: "%")
        return isPlain
            ? String(Unicode.Scalar(octet))
            : String(decoding: Hex.escape(octet, mark: "%"), as: UTF8.self)
    }
}
