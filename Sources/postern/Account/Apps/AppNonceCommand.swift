// postern app nonce: how an app's identity tokens carry the nonce of a request.

import Accounts
import ArgumentParser
import Database

extension AppCommand {
    struct Nonce: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show or set how an app's identity tokens carry the nonce.",
            discussion: """
                A request with an identity token must have the nonce of the sign-in, so that a copied token is of no use. \
                Apps on Apple's systems often pass the SHA-256 of the nonce to the sign-in: that form is sha256_hex. The \
                service applies a change within seconds.
                """)

        @Argument(help: "The team's identifier.")
        var team: String
        @Argument(help: "The app's client_id.")
        var clientID: String
        @Option(help: ArgumentHelp("The form in the token: raw or sha256_hex.", valueName: "form"))
        var form: String?
        @Flag(inversion: .prefixedNo, help: "Whether a request with a token must have a nonce.")
        var required: Bool?
        @OptionGroup var output: OutputOptions
        @OptionGroup var installation: InstallationOptions

        func run() throws {
            try installation.withStore { store in
                let wanted = try form.map { text in
                    guard let form = AppNonceForm(rawValue: text) else {
                        throw CommandError.usage(
                            "\(text.prefix(64)) is not a form of a nonce: use raw or sha256_hex")
                    }
                    return form
                }
                guard let app = try store.apps.decisionApp(clientID: clientID), app.teamID == team
                else {
                    throw StoreFailure.refused(
                        .notFound,
                        "team \(team) has no app \(clientID): see postern app list \(team)")
                }
                let (form, isRequired) = (wanted ?? app.nonceForm, required ?? app.isNonceRequired)
                if form != app.nonceForm || isRequired != app.isNonceRequired {
                    try store.apps.setNonce(
                        team: team, clientID: clientID, form: form, isRequired: isRequired,
                        thisChange())
                }
                let members: Members = [
                    "team": team, "client_id": clientID, "form": form.rawValue,
                    "required": isRequired,
                ]
                try output.print(members) {
                    [
                        ("app", clientID), ("form", form.rawValue),
                        ("required", isRequired ? "yes" : "no"),
                    ]
                }
            }
        }
    }
}
