// The responses of /sandbox and /sandbox/requests.

import SignIn
import Support

/// An entry of the journal.
struct AppleRequestView: Encodable {
    struct Parameter: Encodable {
        let name: String
        let value: String
    }

    let number: Int
    let at: Timestamp
    let method: String
    let path: String
    let clientId: String?
    let status: Int?
    let error: String?
    let cause: String
    let warning: String?
    let parameters: [Parameter]

    init(_ entry: AppleJournal.Entry) {
        (number, at, method, path) = (entry.number, Timestamp(entry.at), entry.method, entry.path)
        (clientId, status, error) = (entry.clientID, entry.status, entry.error)
        (cause, warning) = (entry.cause, entry.warning)
        parameters = entry.parameters.map { Parameter(name: $0.name, value: $0.value) }
    }
}

/// The clients and users, for a test that needs a `sub` in advance.
package struct AppleFactsView: Encodable, Sendable {
    struct Client: Encodable {
        let clientId: String
        let redirectUris: [String]?
        let notifications: String?
    }

    struct User: Encodable {
        let id: String
        let sub: String
        let email: String
        let privateEmail: String
    }

    struct Team: Encodable {
        let teamId: String
        let keyIds: [String]
        let clients: [Client]
        let users: [User]
    }

    let url: String
    let issuer: String
    let now: Timestamp
    let keyIds: [String]
    let teams: [Team]

    /// - Parameter now: by the sandbox's clock, seconds since 1970.
    package init(_ state: AppleState, now: Int64) {
        url = state.address
        issuer = state.issuer
        self.now = Timestamp(now)
        keyIds = state.keys.map(\.id)
        teams = state.seed.teams.map { team in
            Team(
                teamId: team.id, keyIds: team.keys.map(\.id),
                clients: state.seed.clients.filter { state.team(of: $0)?.id == team.id }.map {
                    Client(
                        clientId: $0.id, redirectUris: $0.redirectURIs,
                        notifications: $0.notifications)
                },
                users: state.users.map {
                    User(
                        id: $0.id, sub: AppleState.subject($0.id, team: team.id), email: $0.email,
                        privateEmail: AppleState.privateEmail($0.id, team: team.id))
                })
        }
    }
}
