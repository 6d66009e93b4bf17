// Answers of the Gmail Postmaster Tools API v2 (`domains.domainStats.query`), saved as JSON.

import Accounts
import Support

enum PostmasterStatistics {
    private static let reporter = "Google Postmaster Tools"

    /// Values that are lists of texts are left out.
    static func figures(
        _ answer: ReportValue, _ domains: [String]
    ) throws(ReportFault) -> [ProviderFigure] {
        var figures: [ProviderFigure] = []
        let statistics = try answer["domainStats"].elements()
        for statistic in statistics {
            let domain = try domain(statistic["name"])
            guard domains.contains(where: { $0.hasSameOctets(as: domain) }) else { continue }
            guard let value = statistic["value"].onlyMember else {
                throw statistic["value"].fault("one value is required")
            }
            // An int64 is a text in Google's JSON.
            guard let text = value.optionalNumber ?? value.optionalString else { continue }
            figures.append(
                ProviderFigure(
                    source: .postmaster, reporter: reporter, subject: domain,
                    day: try day(statistic["date"]),
                    name: ProviderReport.text(try statistic["metric"].string(), most: 64),
                    value: ProviderReport.text(text, most: 64)))
        }
        guard !figures.isEmpty else {
            throw answer["domainStats"].fault("no figure is about a relay domain")
        }
        return figures
    }

    /// The domain in `domains/relay.example/domainStats/…`.
    private static func domain(_ name: ReportValue) throws(ReportFault) -> String {
        let parts = try name.string().utf8.split(separator: UInt8(ascii: "/"), maxSplits: 3)
        guard parts.count >= 2, parts[0].elementsEqual("domains".utf8),
            let domain = DomainName.toASCII(String(decoding: parts[1], as: UTF8.self))
        else { throw name.fault("must be as in domains/relay.example/domainStats/…") }
        return domain
    }

    /// A date as an object of year, month and day.
    private static func day(_ date: ReportValue) throws(ReportFault) -> Int64 {
        guard !date.isAbsent else { throw date.fault("absent: query with granularity DAILY") }
        let numbers = try (
            date["year"].integer(), date["month"].integer(), date["day"].integer()
        )
        guard let day = CivilDate.checkedDays(numbers.0, numbers.1, numbers.2) else {
            throw date.fault("no such day")
        }
        return day
    }
}
