// Joins and decodes raw parameters by RFC 2231.

import Support

extension MIMEParameters {
    /// One section of a parameter: `name*3*=value`.
    private struct Section {
        var number: Int
        var isExtended: Bool
        var value: [UInt8]
    }

    private struct Gathered {
        var plain: [UInt8]?
        var sections = [Section]()
    }

    /// Joins raw parameters, in the order of first occurrence.
    static func join(
        _ raw: [ParameterParser.Raw], _ defects: inout Set<ParameterDefect>
    ) -> MIMEParameters {
        var order = [[UInt8]]()
        var gathered = [[UInt8]: Gathered]()
        for parameter in raw {
            let (name, section) = split(parameter)
            guard !name.isEmpty else {
                defects.insert(.malformed)
                continue
            }
            if gathered[name] == nil { order.append(name) }
            var entry = gathered[name, default: Gathered()]
            if let section {
                if entry.sections.contains(where: { $0.number == section.number }) {
                    defects.insert(.duplicate)
                } else {
                    entry.sections.append(section)
                }
            } else if entry.plain == nil {
                entry.plain = parameter.value
            } else {
                defects.insert(.duplicate)
            }
            gathered[name] = entry
        }
        return MIMEParameters(
            order.compactMap { name in gathered[name].map { finish(name, $0, &defects) } })
    }

    /// Splits `name*`, `name*0`, `name*0*`. A name with other asterisks is kept unchanged.
    private static func split(
        _ parameter: ParameterParser.Raw
    ) -> (name: [UInt8], section: Section?) {
        var name = parameter.name[...]
        var isExtended = false
        if name.last == UInt8(ascii: "*") {
            isExtended = true
            name.removeLast()
        }
        if let star = name.lastIndex(of: UInt8(ascii: "*")) {
            let digits = name[(star + 1)...]
            if (1...9).contains(digits.count), digits.allSatisfy(\.isASCIIDigit) {
                let number = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
                return (
                    Array(name[..<star]),
                    Section(number: number, isExtended: isExtended, value: parameter.value)
                )
            }
        }
        guard isExtended else { return (Array(name), nil) }
        // `name*=`: one extended value. Number -1 distinguishes it from a section 0.
        return (Array(name), Section(number: -1, isExtended: true, value: parameter.value))
    }

    private static func finish(
        _ name: [UInt8], _ entry: Gathered, _ defects: inout Set<ParameterDefect>
    ) -> MIMEParameter {
        let text = WireText(validating: name) ?? WireText(String(decoding: name, as: UTF8.self))
        guard !entry.sections.isEmpty else {
            let value = entry.plain ?? []
            if EncodedWord.occurs(in: value[...]) { defects.insert(.encodedWord) }
            return MIMEParameter(name: text, bytes: value)
        }
        if entry.plain != nil { defects.insert(.plainAndExtended) }
        var sections = entry.sections.sorted { $0.number < $1.number }
        if sections.first?.number == -1, sections.count > 1 {
            // `name*=` and `name*0=` together: the single form counts.
            defects.insert(.duplicate)
            sections = [sections[0]]
        }
        var parameter = MIMEParameter(name: text, bytes: [])
        for (position, section) in sections.enumerated() {
            if section.number != -1, section.number != position { defects.insert(.sectionGap) }
            guard section.isExtended else {
                parameter.bytes.append(contentsOf: section.value)
                continue
            }
            var value = section.value[...]
            if position == 0 { readCharset(&value, into: &parameter, &defects) }
            appendPercentDecoded(value, to: &parameter.bytes, &defects)
        }
        if let charset = parameter.charset, Charset.decodeStrict(parameter.bytes, charset) == nil {
            defects.insert(.undecodable)
        }
        return parameter
    }

    /// Reads and removes `charset'language'` at the start.
    private static func readCharset(
        _ value: inout ArraySlice<UInt8>, into parameter: inout MIMEParameter,
        _ defects: inout Set<ParameterDefect>
    ) {
        guard let first = value.firstIndex(of: UInt8(ascii: "'")),
            let second = value[(first + 1)...].firstIndex(of: UInt8(ascii: "'"))
        else {
            defects.insert(.missingCharset)
            return
        }
        let charset = value[..<first].map(\.asciiLowercased)
        let language = value[(first + 1)..<second]
        if !charset.isEmpty { parameter.charset = String(decoding: charset, as: UTF8.self) }
        if !language.isEmpty { parameter.language = String(decoding: language, as: UTF8.self) }
        value = value[(second + 1)...]
    }

    private static func appendPercentDecoded(
        _ value: ArraySlice<UInt8>, to output: inout [UInt8], _ defects: inout Set<ParameterDefect>
    ) {
        var index = value.startIndex
        while index < value.endIndex {
            if value[index] == UInt8(ascii: "%") {
                if index + 2 < value.endIndex, let high = value[index + 1].hexValue,
                    let low = value[index + 2].hexValue
                {
                    output.append(high << 4 | low)
                    index += 3
                    continue
                }
                defects.insert(.invalidPercent)
            }
            output.append(value[index])
            index += 1
        }
    }
}
