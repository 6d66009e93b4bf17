// What providers report about the relay's hosts and domains, as files: SMTP TLS reports, Google
// Postmaster Tools, Outlook's SNDS.

import Accounts
import RelayCore
import Support

/// The reason why a report is not accepted: nothing of it is stored.
package struct ReportFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// Where it is, as in `policies[2].summary` or `line 7`; empty for the whole file.
    package let place: String
    package let message: String

    package var description: String { place.isEmpty ? message : "\(place): \(message)" }

    init(_ place: String, _ message: String) { (self.place, self.message) = (place, message) }
}

package enum ProviderReport {
    /// Octets of a file. A report of a large domain has some hundred thousand.
    package static let maximum = 8_000_000
    /// Policies, failures, statistics and lines of one file.
    static let entries = 10_000

    /// Reads a file by its content; the name means nothing.
    /// - Parameters:
    ///   - octets: plain, gzip or zip.
    ///   - domains: the relay domains, in lower case: figures about others are left out.
    ///   - today: days since 1970 (UTC). A report about a later day is refused: it would stay the
    ///     latest one.
    package static func read(
        _ octets: [UInt8], domains: [String], today: Int64
    ) throws(ReportFault) -> [ProviderFigure] {
        let figures = try figures(octets, domains: domains)
        // Providers count days in their own time zone.
        guard let late = figures.first(where: { !(0...today + 1).contains($0.day) }) else {
            return figures
        }
        throw ReportFault("", "about \(UTCTime.date(late.day)), which is not a day until today")
    }

    private static func figures(
        _ octets: [UInt8], domains: [String]
    ) throws(ReportFault) -> [ProviderFigure] {
        guard octets.count <= maximum,
            let plain = ReportArchive.unpacked(octets, budget: octets.count)
        else {
            throw ReportFault("", "packed in a way that is not read, or larger than 8 MB")
        }
        let text = plain.starts(with: PlainText.byteOrderMark) ? Array(plain.dropFirst(3)) : plain
        switch text.first(where: { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }) {
        case UInt8(ascii: "{"):
            let object: JSONObject
            do throws(JSONError) {
                object = try StrictJSON.parseObject(text, limit: maximum)
            } catch {
                throw ReportFault("octet \(error.offset)", error.message)
            }
            let value = ReportValue(object: object)
            if object["policies"] != nil { return try TLSReport.figures(value, domains) }
            if object["domainStats"] != nil {
                return try PostmasterStatistics.figures(value, domains)
            }
            throw ReportFault(
                "",
                "neither a TLS report (policies) nor statistics of Postmaster Tools (domainStats)")
        case UInt8(ascii: "<"):
            throw ReportFault(
                "",
                "XML: send DMARC reports to an address of local_recipients (postern status --dmarc)"
            )
        case .some: return try NetworkDataReport.figures(text)
        case nil: throw ReportFault("", "empty")
        }
    }

    /// A text of a report in the form in which it may be stored and shown.
    static func text(_ text: String, most: Int = 100) -> String {
        let cut = String(String.UnicodeScalarView(text.unicodeScalars.prefix(most)))
        return PersonText.cleaned(cut).text
    }
}

/// A value of a JSON report with its place.
struct ReportValue {
    let place: String
    private let value: JSONValue?

    init(object: JSONObject) { (place, value) = ("", .object(object)) }

    private init(place: String, value: JSONValue?) { (self.place, self.value) = (place, value) }

    /// The member; absent if this is no object.
    subscript(name: String) -> ReportValue {
        ReportValue(
            place: place.isEmpty ? name : "\(place).\(name)", value: value?.object?[name])
    }

    var isAbsent: Bool { value == nil || value == .null }
    var optionalString: String? { value?.string }
    var optionalNumber: String? { value?.number?.text }
    /// The only member, as of a union; nil if there is none or more.
    var onlyMember: ReportValue? {
        guard let members = value?.object?.members, members.count == 1 else { return nil }
        return self[members[0].name]
    }

    func fault(_ message: String) -> ReportFault { ReportFault(place, message) }

    func string() throws(ReportFault) -> String {
        guard let text = value?.string, !text.isEmpty else { throw fault("a text is required") }
        return text
    }

    /// A number of sessions; 0 if it is absent.
    func count() throws(ReportFault) -> Int64 {
        if isAbsent { return 0 }
        guard let number = value?.number?.integer, (0...1_000_000_000_000).contains(number) else {
            throw fault("a whole number of 0 or more is required")
        }
        return number
    }

    func integer() throws(ReportFault) -> Int64 {
        guard let number = value?.number?.integer else { throw fault("a whole number is required") }
        return number
    }

    /// The elements; none if it is absent.
    func elements() throws(ReportFault) -> [ReportValue] {
        if isAbsent { return [] }
        guard let array = value?.array else { throw fault("a list is required") }
        guard array.count <= ProviderReport.entries else {
            throw fault("more than \(ProviderReport.entries) entries")
        }
        return array.enumerated().map {
            ReportValue(place: "\(place)[\($0.offset)]", value: $0.element)
        }
    }

    /// A domain in lower case.
    func domain() throws(ReportFault) -> String {
        guard let domain = DomainName.toASCII(try string()) else {
            throw fault("a domain is required")
        }
        return domain
    }
}
