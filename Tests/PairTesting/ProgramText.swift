// The text of a mail as programs quote it: marked, broken, indented, shortened.

import TestSupport

struct ProgramText {
    let lines: [String]
    let form: ProgramForm

    init(_ text: String, _ form: ProgramForm) {
        lines = Octets.lines(of: text)
        self.form = form
    }

    private static func half(_ lines: [String], _ number: Int) -> [String] {
        let middle = (lines.count + 1) / 2
        return Array(number == 1 ? lines[..<middle] : lines[middle...])
    }

    private static func joined(_ lines: [String]) -> String { lines.joined(separator: "\n") }

    func marked(with mark: String = "> ") -> [String] {
        lines.map { $0.isEmpty && mark == "> " ? ">" : mark + $0 }
    }

    /// Broken where a program breaks marked lines.
    private func wrapped() -> [String] {
        let wrap = form.wrap ?? ProgramForm.Wrap(width: 72, isMarked: false, eachLine: false)
        if wrap.eachLine {
            // Every third line has lost its mark.
            return lines.enumerated().map {
                $0.offset % 3 == 2 ? $0.element : form.mark + $0.element
            }
        }
        return lines.flatMap { line -> [String] in
            var output: [String] = []
            var rest = Array((form.mark + line).utf8)
            while rest.count > wrap.width, let space = rest[..<wrap.width].lastIndex(of: 0x20),
                space > form.mark.utf8.count
            {
                output.append(String(decoding: rest[..<space], as: UTF8.self))
                rest = (wrap.isMarked ? Array(form.mark.utf8) : []) + rest[(space + 1)...]
            }
            return output + [String(decoding: rest, as: UTF8.self)]
        }
    }

    /// Space-stuffed, and broken with a space at the end (RFC 3676).
    private func flowed() -> [String] {
        lines.flatMap { line -> [String] in
            var output: [String] = []
            var rest = Array(line.utf8)
            while rest.count > 66, let space = rest[..<66].lastIndex(of: 0x20), space > 0 {
                output.append("> " + String(decoding: rest[...space], as: UTF8.self))
                rest = Array(rest[(space + 1)...])
            }
            return output + ["> " + String(decoding: rest, as: UTF8.self)]
        }
    }

    /// The value of a placeholder, if it is the text in some form.
    func value(_ name: String, seed: UInt64) -> String? {
        switch name {
        case "original_plain": Self.joined(lines)
        case "original_quoted":
            Self.joined(form.wrap != nil && form.wrap?.eachLine == false ? wrapped() : marked())
        case "original_quoted_1": Self.joined(Self.half(marked(), 1))
        case "original_quoted_2": Self.joined(Self.half(marked(), 2))
        case "original_quoted_tight": Self.joined(lines.map { ">" + $0 })
        case "original_marked": Self.joined(lines.map { form.mark + $0 })
        case "original_indented": Self.joined(lines.map { "    " + $0 })
        case "original_quoted_wrapped": Self.joined(wrapped())
        case "original_quoted_wrapped_1": Self.joined(Self.half(wrapped(), 1))
        case "original_quoted_wrapped_2": Self.joined(Self.half(wrapped(), 2))
        case "original_quoted_flowed": Self.joined(flowed())
        case "original_quoted_2nd": Self.joined(lines.map { ">>> " + $0 })
        case "original_line": lines[Int(seed % UInt64(max(1, lines.count)))]
        case "original_quoted_html":
            marked().map { TeamMail.escaped($0) }.joined(separator: "<br>\n")
        default: nil
        }
    }
}
