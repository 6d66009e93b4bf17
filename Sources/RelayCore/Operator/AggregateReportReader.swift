// Finds the aggregate report in a message to the operator, and unpacks it.

import InternetMessage
import LeakSearch

enum AggregateReportReader {
    /// Whether a message announces a report (RFC 9990 section 4.1: the form of the Subject).
    static func isAnnounced(by header: HeaderSection) -> Bool {
        let subject = (header.first("Subject")?.decodedValue ?? "").lowercased()
        return subject.contains("report domain:") && subject.contains("submitter:")
    }

    /// The report; nil if there is none or it cannot be read.
    static func read(header: HeaderSection, body: [UInt8], now: Int64) -> AggregateReport? {
        let parts = MIMEPart.parse(header: header, body: body).flattened
        // A report has one such part; others are ignored.
        guard let part = parts.first(where: { !$0.isComposite && isPacked($0.contentType) }),
            let octets = part.transferEncoding.decode(body[part.bodyRange])?.bytes,
            let xml = ReportArchive.unpacked(octets, budget: body.count)
        else { return nil }
        return AggregateReport(xml: xml, now: now)
    }

    /// Content types of reports; some reports declare only octets.
    private static func isPacked(_ type: ContentType) -> Bool {
        ["gzip", "x-gzip", "zip", "x-zip-compressed", "x-zip", "octet-stream", "xml"].contains {
            type.matches("application", $0)
        } || type.matches("text", "xml")
    }
}

/// Unpacks reports.
package enum ReportArchive {
    /// Maximum octets of an unpacked report, and its maximum ratio to the packed size. Reports of
    /// large domains have some hundred thousand octets, packed to a tenth or less. The memory for a
    /// message is calculated from its size.
    private static let limit = 8_000_000
    private static let factor = 40
    /// Octets to which even the smallest report may unpack.
    private static let least = 500_000

    /// - Parameters:
    ///   - octets: plain, gzip or zip, of which the first file is read.
    ///   - budget: octets from which the permitted work is calculated.
    /// - Returns: nil for another archive, a damaged one, and one that is too large.
    package static func unpacked(_ octets: [UInt8], budget: Int) -> [UInt8]? {
        guard let kind = Archive(octets) else { return octets.count <= limit ? octets : nil }
        guard kind == .gzip || kind == .zip, let start = kind.deflated(in: octets).first else {
            return nil
        }
        let work = WorkBudget(octets: budget)
        let limit = min(limit, max(least, octets.count * factor))
        var xml: [UInt8] = []
        octets.withUnsafeBufferPointer { all in
            _ = Inflater(work: work).inflate(UnsafeBufferPointer(rebasing: all[start...])) {
                piece in
                xml += piece
                return xml.count <= limit
            }
        }
        return xml.count <= limit && !work.isSpent ? xml : nil
    }
}
