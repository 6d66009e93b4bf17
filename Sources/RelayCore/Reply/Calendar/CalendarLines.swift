// Parses iCalendar (RFC 5545): components, and properties with their parameters.

import InternetMessage
import Support

/// One property of a calendar.
struct CalendarProperty {
    /// Upper case.
    let name: [UInt8]
    /// Names in upper case; values without quotes.
    let parameters: [(name: [UInt8], values: [[UInt8]])]
    let value: [UInt8]

    /// - Parameter line: unfolded, without its line break.
    init?(_ line: ArraySlice<UInt8>) {
        let name = line.prefix { $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "-") }
        guard !name.isEmpty, name.endIndex < line.endIndex else { return nil }
        var parameters: [(name: [UInt8], values: [[UInt8]])] = []
        var index = name.endIndex
        while index < line.endIndex, line[index] == UInt8(ascii: ";") {
            let parameter = line[(index + 1)...].prefix { !"=;:".utf8.contains($0) }
            index = parameter.endIndex
            var values: [[UInt8]] = []
            while index < line.endIndex,
                line[index] == UInt8(ascii: "=") || line[index] == UInt8(ascii: ",")
            {
                index += 1
                guard index < line.endIndex else { break }
                if line[index] == UInt8(ascii: "\"") {
                    let value = line[(index + 1)...].prefix { $0 != UInt8(ascii: "\"") }
                    values.append(Array(value))
                    index = min(value.endIndex + 1, line.endIndex)
                } else {
                    let value = Self.bare(line[index...])
                    values.append(Array(value))
                    index = value.endIndex
                }
            }
            parameters.append((Self.upper(parameter), values))
        }
        guard index < line.endIndex, line[index] == UInt8(ascii: ":") else { return nil }
        self.name = Self.upper(name)
        self.parameters = parameters
        value = Array(HeaderField.trim(line[(index + 1)...]))
    }

    /// A value without quotes; `SENT-BY=mailto:a@b` is invalid, but occurs.
    private static func bare(_ rest: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let value = rest.prefix { !",;:".utf8.contains($0) }
        guard value.equalsIgnoringASCIICase("mailto".utf8), value.endIndex < rest.endIndex,
            rest[value.endIndex] == UInt8(ascii: ":")
        else { return value }
        return rest[..<rest[(value.endIndex + 1)...].prefix { !",;:".utf8.contains($0) }.endIndex]
    }

    static func upper(_ octets: some Collection<UInt8>) -> [UInt8] {
        octets.map { (0x61...0x7A).contains($0) ? $0 & 0xDF : $0 }
    }

    func isNamed(_ name: StaticString) -> Bool {
        name.withUTF8Buffer { self.name.elementsEqual($0) }
    }

    /// The first value of a parameter.
    func parameter(_ name: String) -> [UInt8]? {
        parameters.first { $0.name.elementsEqual(name.utf8) }?.values.first
    }

    /// The address in the value, with or without a scheme.
    var address: AddrSpec? { Self.address(value) }

    static func address(_ value: [UInt8]) -> AddrSpec? {
        let scheme = Array("mailto:".utf8)
        let hasScheme =
            value.count > scheme.count && value[..<scheme.count].equalsIgnoringASCIICase(scheme)
        let text = hasScheme ? MailtoURI.percentDecoded(value[scheme.count...]) : value
        if let address = AddrSpec(envelope: String(decoding: text, as: UTF8.self)) {
            return address
        }
        return AddressList.parse(text[...]).mailboxes.first?.addrSpec
    }
}

/// A component with its content.
struct CalendarComponent {
    /// Upper case; empty for the root.
    let name: [UInt8]
    var properties: [CalendarProperty] = []
    var children: [CalendarComponent] = []

    private static let maximumDepth = 8
    private static let maximumCount = 50
    private static let maximumProperties = 500

    /// The components of a text, below a root without a name; nil if there are more than in any
    /// invitation.
    static func read(_ text: [UInt8]) -> CalendarComponent? {
        var open = [CalendarComponent(name: [])]
        var count = 0
        for line in ContentLines.Unfolded(text).octets.split(separator: 0x0A) {
            let line = line.last == 0x0D ? line.dropLast() : line
            guard let property = CalendarProperty(line) else { continue }
            if property.isNamed("BEGIN") {
                count += 1
                guard open.count < maximumDepth, count <= maximumCount else { return nil }
                open.append(CalendarComponent(name: CalendarProperty.upper(property.value)))
            } else if property.isNamed("END") {
                // An end closes the component that it names, and every open component within it.
                let name = CalendarProperty.upper(property.value)
                guard let index = open.lastIndex(where: { $0.name == name }), index > 0 else {
                    continue
                }
                while open.count > index { close(&open) }
            } else {
                guard open[open.count - 1].properties.count < maximumProperties else { return nil }
                open[open.count - 1].properties.append(property)
            }
        }
        while open.count > 1 { close(&open) }
        return open[0]
    }

    private static func close(_ open: inout [CalendarComponent]) {
        let last = open.removeLast()
        open[open.count - 1].children.append(last)
    }

    func isNamed(_ name: StaticString) -> Bool {
        name.withUTF8Buffer { self.name.elementsEqual($0) }
    }

    /// Every property, in order.
    var all: [CalendarProperty] { properties + children.flatMap(\.all) }
}
