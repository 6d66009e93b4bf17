// postern app attestation: the app ids that devices may attest for an app.

import ArgumentParser
import Decisions
import Foundation
import WebAuthn

extension AppAttestExpectation.Environment: ExpressibleByArgument {}

extension AppCommand {
    struct Attestation: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "attestation",
            abstract: "Add, list and remove the app ids that devices attest (App Attest).",
            discussion: """
                A device attests an app id, TEAMID.bundle.id, with a certificate chain that leads to Apple's App Attest \
                root. Apple publishes the root; give its file, in PEM or DER:

                  postern app attestation add juice com.juice.app --app-id 0352187391.com.juice.app \\
                    --root Apple_App_Attestation_Root_CA.pem

                Apps from the App Store and TestFlight attest in the environment production.
                """,
            subcommands: [Add.self, List.self, Remove.self])

        struct Add: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Accept attestations of an app id.",
                discussion:
                    "If the app id is registered already, its root is replaced, and its devices must attest again."
            )

            @Argument(help: "The team's identifier.") var team: String
            @Argument(help: "The app's client_id.") var clientID: String
            @Option(help: ArgumentHelp("The app id.", valueName: "TEAMID.bundle.id")) var appID:
                String
            @Option(
                help: ArgumentHelp("The root certificate, PEM or DER.", valueName: "file"),
                transform: filePath) var root: String
            @Option(help: ArgumentHelp("production or development.", valueName: "name"))
            var environment: AppAttestExpectation.Environment = .production
            @OptionGroup var installation: InstallationOptions

            func run() throws {
                let certificate = try RootFile.read(root)
                try installation.withStore { store in
                    try store.attestedApps.add(
                        team: team, clientID: clientID, appID: appID, environment: environment,
                        root: certificate, thisChange())
                    print(
                        "Attestations of \(appID) (\(environment.rawValue)) are accepted for app \(clientID)."
                    )
                }
            }
        }

        struct List: ParsableCommand {
            static let configuration = CommandConfiguration(abstract: "List the app ids of an app.")

            @Argument(help: "The team's identifier.") var team: String
            @Argument(help: "The app's client_id.") var clientID: String
            @OptionGroup var installation: InstallationOptions
            @OptionGroup var output: OutputOptions

            func run() throws {
                let found = try installation.withStore {
                    try $0.attestedApps.appIDs(team: team, clientID: clientID)
                }
                try output.print(found, ["APP ID", "ENVIRONMENT", "SINCE"]) {
                    [
                        "app_id": $0.appID, "environment": $0.environment.rawValue,
                        "created_at": timestamp($0.createdAt),
                    ]
                } columns: {
                    [$0.appID, $0.environment.rawValue, timestamp($0.createdAt)]
                }
            }
        }

        struct Remove: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Stop accepting attestations of an app id.",
                discussion: "From then on, devices that attested it do not count as attested.")

            @Argument(help: "The team's identifier.") var team: String
            @Argument(help: "The app's client_id.") var clientID: String
            @Option(help: ArgumentHelp("The app id.", valueName: "TEAMID.bundle.id")) var appID:
                String
            @Option(help: ArgumentHelp("production or development.", valueName: "name"))
            var environment: AppAttestExpectation.Environment = .production
            @OptionGroup var installation: InstallationOptions

            func run() throws {
                try installation.withStore { store in
                    try store.attestedApps.remove(
                        team: team, clientID: clientID, appID: appID, environment: environment,
                        thisChange())
                    print(
                        "Attestations of \(appID) (\(environment.rawValue)) are refused for app \(clientID)."
                    )
                }
            }
        }
    }

    /// A certificate in a file.
    private enum RootFile {
        /// The maximum number of octets of a file with one certificate.
        private static let longest = 16_384

        /// DER of the first certificate.
        static func read(_ path: String) throws -> [UInt8] {
            guard
                let der = CertificateFile.read(Array(try InputFile.octets(path, maximum: longest)))?
                    .first
            else {
                throw CommandError.data("\(path): not a certificate in PEM or DER")
            }
            return der
        }
    }
}
