// A reader of mail for the pairs: everything in a message that the team's programs can see, part by
// part.

/// A part of a message, decoded as far as programs decode it.
package struct ReadPart {
    /// Names in lower case; values unfolded, and not decoded.
    package private(set) var fields: [(name: [UInt8], value: [UInt8])] = []
    /// In lower case, without parameters.
    package private(set) var type = Array("text/plain".utf8)
    /// The content of a part that has no parts in it, without its transfer encoding.
    package private(set) var content: [UInt8] = []
    package private(set) var parts: [ReadPart] = []
    /// The text above the first part and below the last one.
    package private(set) var around: [UInt8] = []

    /// - Parameter octets: header section and body; line ends as CRLF or LF.
    package init(_ octets: [UInt8], depth: Int = 0, isInDigest: Bool = false) {
        var lines = Octets.lines(octets)[...]
        while let line = lines.first {
            lines = lines.dropFirst()
            if line.isEmpty { break }
            if line[0] == 0x20 || line[0] == 0x09, !fields.isEmpty {
                fields[fields.count - 1].value += line
            } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
                fields.append(
                    (Octets.lower(Octets.trim(Array(line[..<colon]))), Array(line[(colon + 1)...])))
            } else {
                around += line
            }
        }
        let body = Array(lines.joined(separator: [0x0D, 0x0A]))
        let contentType =
            value("content-type") ?? Array((isInDigest ? "message/rfc822" : "text/plain").utf8)
        type = Octets.lower(
            Octets.trim(Array(contentType.split(separator: UInt8(ascii: ";")).first ?? [])))
        if type.starts(with: "multipart/".utf8), depth < 12,
            let boundary = Self.parameter("boundary", of: contentType)
        {
            read(lines, boundary: boundary, depth: depth)
            return
        }
        content = Self.decode(
            body, Octets.lower(Octets.trim(value("content-transfer-encoding") ?? [])))
        if type == Array("message/rfc822".utf8) || type == Array("text/rfc822-headers".utf8),
            depth < 12
        {
            parts = [ReadPart(content, depth: depth + 1)]
        }
    }

    private mutating func read(_ lines: ArraySlice<[UInt8]>, boundary: [UInt8], depth: Int) {
        let marker = Array("--".utf8) + boundary
        var part: [[UInt8]]?
        var isOver = false
        let isDigest = type == Array("multipart/digest".utf8)
        for line in lines {
            if !isOver, line.starts(with: marker) {
                if let part {
                    parts.append(
                        ReadPart(
                            Array(part.joined(separator: [0x0D, 0x0A])), depth: depth + 1,
                            isInDigest: isDigest))
                }
                isOver = line[marker.count...].starts(with: "--".utf8)
                part = isOver ? nil : []
            } else if part != nil {
                part?.append(line)
            } else {
                around += line + [0x0A]
            }
        }
        if let part {
            parts.append(
                ReadPart(
                    Array(part.joined(separator: [0x0D, 0x0A])), depth: depth + 1,
                    isInDigest: isDigest))
        }
    }

    /// The value of the first field of this name, given in lower case.
    package func value(_ name: String) -> [UInt8]? {
        fields.first { $0.name == Array(name.utf8) }?.value
    }

    /// Its text, encoded words decoded, without blanks at the ends.
    package func text(_ name: String) -> String {
        String(decoding: Octets.trim(Self.decodeWords(value(name) ?? [])), as: UTF8.self)
    }

    /// The parameter of a field's value, as written.
    package static func parameter(_ name: String, of value: [UInt8]) -> [UInt8]? {
        var from = 0
        while let start = Octets.find(
            Array((name + "=").utf8), in: value, from: from, ignoringCase: true)
        {
            from = start + 1
            guard start > 0, value[start - 1] == UInt8(ascii: ";") || value[start - 1] <= 0x20
            else { continue }
            let rest = value[(start + name.utf8.count + 1)...]
            guard rest.first == UInt8(ascii: "\"") else {
                return Array(rest.prefix { $0 > 0x20 && $0 != UInt8(ascii: ";") })
            }
            return Array(rest.dropFirst().prefix { $0 != UInt8(ascii: "\"") })
        }
        return nil
    }

    private static func decode(_ body: [UInt8], _ encoding: [UInt8]) -> [UInt8] {
        switch String(decoding: encoding, as: UTF8.self) {
        case "base64": Octets.fromBase64(body)
        case "quoted-printable": Octets.fromQuotedPrintable(body)
        default: body
        }
    }

    /// With its encoded words (RFC 2047) decoded, in any charset.
    package static func decodeWords(_ value: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        var start = 0
        var isBehindWord = false
        while let opening = Octets.find(Array("=?".utf8), in: value, from: start) {
            let question = UInt8(ascii: "?")
            guard let charsetEnd = value[(opening + 2)...].firstIndex(of: question),
                charsetEnd + 2 < value.count,
                value[charsetEnd + 2] == question,
                let textEnd = Octets.find(Array("?=".utf8), in: value, from: charsetEnd + 3)
            else {
                output += value[start..<(opening + 2)]
                start = opening + 2
                isBehindWord = false
                continue
            }
            let between = value[start..<opening]
            if !(isBehindWord && between.allSatisfy { $0 <= 0x20 }) { output += between }
            let text = Array(value[(charsetEnd + 3)..<textEnd])
            output +=
                Octets.lower(value[charsetEnd + 1]) == UInt8(ascii: "b")
                ? Octets.fromBase64(text) : Octets.fromQuotedPrintable(text, isWord: true)
            start = textEnd + 2
            isBehindWord = true
        }
        return output + value[start...]
    }

    /// The first part of this type that is not an attachment, this one included.
    package func first(_ wanted: String) -> ReadPart? {
        if type == Array(wanted.utf8), parts.isEmpty { return self }
        guard type.starts(with: "multipart/".utf8) else { return nil }
        for part in parts { if let found = part.first(wanted) { return found } }
        return nil
    }

    /// Everything that can be seen, each with its place.
    package func items(_ path: String = "") -> [(place: String, octets: [UInt8])] {
        var items: [(place: String, octets: [UInt8])] = fields.map {
            ("\(path)field \(String(decoding: $0.name, as: UTF8.self))", Self.decodeWords($0.value))
        }
        let name = path + String(decoding: type, as: UTF8.self)
        items.append(("\(name) around", around))
        items.append((name, parts.isEmpty ? content : []))
        for (index, part) in parts.enumerated() { items += part.items("\(name) \(index) > ") }
        return items
    }
}
