// The expected body of a forward, by separate and simple code: part for part, decoded, link for
// link.

import Foundation
import InternetMessage

@testable import RelayCore

/// Compares a received body with the outgoing body.
struct ForwardBodyReference {
    let account: RelayAccount
    /// Returns the reverse address of a correspondent.
    let reverse: (AddrSpec) -> AddrSpec
    /// Links that were found and rewritten to the relay.
    private(set) var rewritten = 0

    init(account: RelayAccount, reverse: @escaping (AddrSpec) -> AddrSpec) {
        self.account = account
        self.reverse = reverse
    }

    /// The faults of `after`.
    mutating func faults(_ header: HeaderSection, _ before: [UInt8], _ after: [UInt8]) -> [String] {
        let (old, new) = (Self.leaves(header, before), Self.leaves(header, after))
        guard old.count == new.count else {
            return ["body: \(old.count) parts became \(new.count)"]
        }
        var faults: [String] = []
        // Nothing changes between the parts.
        var ends = (0, 0)
        for ((one, isWhole), (other, _)) in zip(old, new) {
            if before[ends.0..<one.bodyRange.lowerBound]
                != after[ends.1..<other.bodyRange.lowerBound]
            {
                faults.append(
                    "body: changed before part \(one.contentType.type)/\(one.contentType.subtype)")
            }
            ends = (one.bodyRange.upperBound, other.bodyRange.upperBound)
            faults += self.faults(
                one, isWhole: isWhole, Array(before[one.bodyRange]), Array(after[other.bodyRange]))
        }
        if before[ends.0...] != after[ends.1...] {
            faults.append("body: changed behind the last part")
        }
        return faults
    }

    /// The leaf parts in order, and whether each is within a signed or encrypted part.
    private static func leaves(
        _ header: HeaderSection, _ body: [UInt8]
    ) -> [(part: MIMEPart, isWhole: Bool)] {
        func leaves(_ part: MIMEPart, _ isWhole: Bool) -> [(MIMEPart, Bool)] {
            let isWhole =
                isWhole || part.contentType.matches("multipart", "signed")
                || part.contentType.matches("multipart", "encrypted")
            return part.isComposite
                ? part.children.flatMap { leaves($0, isWhole) } : [(part, isWhole)]
        }
        return leaves(MIMEPart.parse(header: header, body: body), false)
    }

    private mutating func faults(
        _ part: MIMEPart, isWhole: Bool, _ before: [UInt8], _ after: [UInt8]
    ) -> [String] {
        let name = "\(part.contentType.type)/\(part.contentType.subtype)"
        if before == after {
            // No link may be left that should have been rewritten.
            guard !isWhole, let text = Self.text(part, before) else { return [] }
            let expected = expected(text, part)
            return expected == text
                ? [] : ["\(name): a link stayed: \(Self.difference(expected, text))"]
        }
        guard !isWhole else { return ["\(name): changed within what is signed"] }
        guard
            let (old, new) = Self.text(part, before).flatMap({ old in
                Self.text(part, after).map { (old, $0) }
            })
        else {
            return ["\(name): changed, and is no text that is looked at"]
        }
        let expected = expected(old, part)
        if expected == old {
            return ["\(name): changed without need: \(Self.difference(old, new))"]
        }
        return expected == new ? [] : ["\(name): \(Self.difference(expected, new))"]
    }

    /// The text of a part as programs see it, octet for octet in ISO 8859-1, or nil if a forward
    /// does not read it.
    private static func text(_ part: MIMEPart, _ body: [UInt8]) -> String? {
        let type = part.contentType
        let file = (part.disposition?.filename ?? type.parameters["name"] ?? "").lowercased()
        let isCalendar = isCalendar(part)
        let isShown =
            (type.type == "text" || (type.type == "application" && type.subtype == "xhtml+xml"))
            && part.disposition?.disposition != "attachment"
            && !["vcard", "x-vcard", "directory"].contains(type.subtype)
        guard isCalendar || isShown, !file.hasSuffix(".vcf") || type.type == "text",
            let decoded = part.transferEncoding.decode(body[...])
        else { return nil }
        let text = String(
            String.UnicodeScalarView(decoded.bytes.filter { $0 != 0 }.map { Unicode.Scalar($0) }))
        // Calendars fold their lines (RFC 5545 section 3.1), and fold longer lines again.
        return isCalendar
            ? text.replacing(/\r?\n[ \t]/.matchingSemantics(.unicodeScalar), with: "") : text
    }

    private static func isCalendar(_ part: MIMEPart) -> Bool {
        let file = (part.disposition?.filename ?? part.contentType.parameters["name"] ?? "")
            .lowercased()
        return ["calendar", "x-vcalendar", "ics", "x-ics", "calendar+xml", "calendar+json"]
            .contains(part.contentType.subtype)
            || [".ics", ".ical", ".icalendar", ".vcs", ".ifb"].contains { file.hasSuffix($0) }
    }

    private mutating func expected(_ text: String, _ part: MIMEPart) -> String {
        let isCalendar = Self.isCalendar(part)
        // A signed block within a text stays. A text with such a block is not examined more closely
        // here.
        if text.contains("-----BEGIN PGP") { return text }
        let link = /(?i)mailto:([^\s"'<>?&;)\]\\]+)/.matchingSemantics(.unicodeScalar)
        // The user's own program looks for the inbox among the attendees.
        let own =
            isCalendar
            ? account.inbox?.address.revealed ?? account.relayAddress : account.relayAddress
        return text.replacing(link) { match in
            guard match.output.1.contains("@") || match.output.1.contains("%40") else {
                return String(match.output.0)
            }
            // Text that is not an address is removed.
            let mapped = match.output.1.split(separator: ",").compactMap {
                AddrSpec(envelope: $0.removingPercentEncoding ?? String($0))
            }
            .map { $0 == account.relayAddress ? own : reverse($0) }
            rewritten += 1
            return "mailto:"
                + mapped.map { isCalendar ? $0.wireForm : $0.wireForm.replacing("=", with: "%3D") }
                .joined(separator: ",")
        }
    }

    private static func difference(_ expected: String, _ found: String) -> String {
        let (one, other) = (Array(expected.unicodeScalars), Array(found.unicodeScalars))
        let at =
            zip(one, other).enumerated().first { $0.element.0 != $0.element.1 }?.offset
            ?? min(one.count, other.count)
        func around(_ text: [Unicode.Scalar]) -> String {
            String(String.UnicodeScalarView(text[max(0, at - 60)..<min(text.count, at + 80)]))
                .debugDescription
        }
        return "\(around(one)) expected, \(around(other)) found"
    }
}
