// postern delivery import: reads what providers report about the relay's hosts and domains.

import Accounts
import Administration
import ArgumentParser
import Foundation
import Support

extension DeliveryCommand {
    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Read providers' reports about your hosts and domains.",
            discussion: """
                Reads by content, plain or gzip: SMTP TLS reports (RFC 8460, JSON); answers of the Google Postmaster Tools API \
                v2 (domainStats:query with granularity DAILY), saved as JSON; and the CSV of the automated access of Outlook's \
                SNDS. postern status shows the latest figures of the last 14 days.

                A report that was read before counts once. A file with a fault is refused as a whole, with the place of the \
                fault, and the others are read.
                """)

        @Argument(
            help: ArgumentHelp(
                "Reports, folders of reports, or - for standard input.", valueName: "file"),
            completion: .file(), transform: filePath)
        var files: [String]
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard !files.isEmpty else { throw ValidationError("Give a file, a folder, or -.") }
        }

        func run() throws {
            try installation.withInstallation { installation in
                let domains = installation.configuration.relayDomains
                let paths = try files.flatMap(Read.paths)
                var (figures, new) = (0, 0)
                var faults: [String] = []
                for path in paths {
                    let found: [ProviderFigure]
                    do {
                        let octets = try InputFile.octets(path, maximum: ProviderReport.maximum)
                        found = try ProviderReport.read(
                            Array(octets), domains: domains, today: Day.number(PosternClock.now()))
                    } catch let fault as ReportFault {
                        faults.append("\(path): \(fault)")
                        continue
                    } catch let error as CommandError {
                        faults.append(error.message)
                        continue
                    }
                    figures += found.count
                    new += try installation.store.deliveries.add(found)
                }
                if output.json {
                    try printJSON(["figures": figures, "new": new] as Members)
                } else {
                    print("\(Count.text(figures, "figure")), \(new) of them new")
                }
                guard faults.isEmpty else {
                    throw CommandError.data(faults.joined(separator: "; "))
                }
            }
        }
    }
}
