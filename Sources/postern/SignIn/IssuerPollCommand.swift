// postern issuer poll: the URL from which Postern fetches an issuer's security events.

import Accounts
import ArgumentParser
import PosternConfiguration
import SignIn

struct IssuerPollCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "poll",
        abstract: "Fetch the security events of an issuer (RFC 8936), or stop fetching them.",
        discussion: """
            The issuer's stream is polled every ten seconds, by only one of the hosts. Its events are used only as signals \
            for policies (docs/SHARED_SIGNALS.md). An issuer that pushes events sends them to /v1/notifications/NAME \
            instead.
            """)

    @Argument(help: "The issuer's name.") var name: String
    @Option(help: ArgumentHelp("The stream's endpoint_url.", valueName: "address")) var url: String?
    @Option(
        help: ArgumentHelp(
            "A file with the access token for the stream, readable only by its owner.",
            valueName: "file"),
        transform: filePath)
    var tokenFile: String?
    @Flag(help: "Also accept plain http to other hosts.") var allowHttp = false
    @Flag(help: "Stop fetching the events.") var stop = false
    @OptionGroup var installation: InstallationOptions

    func validate() throws {
        guard (url == nil) == stop else { throw ValidationError("Give --url, or --stop.") }
    }

    func run() throws {
        guard let url else {
            let was = try installation.withStore { try $0.issuerPolls.remove(name, thisChange()) }
            return print(
                was
                    ? "The events of \(name) are no longer fetched."
                    : "The events of \(name) were not fetched.")
        }
        if let objection = KeySetAddress.objection(url, allowingHTTP: allowHttp) {
            throw CommandError.data("--url: \(objection)")
        }
        let token = try tokenFile.map {
            try SecretFile.text($0, for: "--token-file", at: "command line")
        }
        let poll = IssuerPoll(issuer: name, url: url, allowsHTTP: allowHttp)
        try installation.withStore { try $0.issuerPolls.set(poll, token: token, thisChange()) }
        print("The events of \(name) are fetched from \(url).")
    }
}
