// SMTP TLS reports (RFC 8460): how servers that send to the relay domains could encrypt.

import Accounts
import Support

enum TLSReport {
    /// The result types of RFC 8460 section 4.3; all others are `other`.
    private static let results = [
        "starttls-not-supported", "certificate-host-mismatch", "certificate-expired",
        "certificate-not-trusted", "validation-failure", "tlsa-invalid", "dnssec-invalid",
        "dane-required", "sts-policy-fetch-error", "sts-policy-invalid", "sts-webpki-invalid",
    ]

    /// Fields that the RFC requires and some reports lack, such as `sending-mta-ip`, are not
    /// needed.
    static func figures(
        _ report: ReportValue, _ domains: [String]
    ) throws(ReportFault) -> [ProviderFigure] {
        let begin = report["date-range"]["start-datetime"]
        guard
            let day = CivilDate.days(
                String(decoding: try begin.string().utf8.prefix(10), as: UTF8.self))
        else { throw begin.fault("a time is required, as in 2016-04-01T00:00:00Z") }
        let reporter = ProviderReport.text(try report["organization-name"].string())
        let identifier = ProviderReport.text(try report["report-id"].string(), most: 200)
        var sums: [String: [String: Int64]] = [:]
        for policy in try report["policies"].elements() {
            let domain = try policy["policy"]["policy-domain"].domain()
            guard domains.contains(where: { $0.hasSameOctets(as: domain) }) else { continue }
            func add(_ name: String, _ value: ReportValue) throws(ReportFault) {
                sums[domain, default: [:]][name, default: 0] += try value.count()
            }
            try add("sessions", policy["summary"]["total-successful-session-count"])
            try add("failures", policy["summary"]["total-failure-session-count"])
            for failure in try policy["failure-details"].elements() {
                let type = try failure["result-type"].string()
                let known = results.first { $0.hasSameOctets(as: type) } ?? "other"
                try add("failures \(known)", failure["failed-session-count"])
            }
        }
        guard !sums.isEmpty else {
            throw report["policies"].fault("no policy is about a relay domain")
        }
        return sums.sorted { $0.key < $1.key }.flatMap { domain, counts in
            counts.sorted { $0.key < $1.key }.map { name, count in
                ProviderFigure(
                    source: .tls, reporter: reporter, subject: domain, day: day, name: name,
                    report: identifier, value: "\(count)")
            }
        }
    }
}
