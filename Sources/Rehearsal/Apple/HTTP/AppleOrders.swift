// Reads the clients, users and words that orders name.

import HTTP

extension AppleState {
    /// The client with this id, or the only one. Throws `Problem` (422).
    func ordered(client id: String?) throws -> AppleClient {
        let found =
            id.map { seed.client($0) } ?? (seed.clients.count == 1 ? seed.clients.first : nil)
        guard let found else {
            throw Problem.invalid(
                id == nil
                    ? "the seed has several clients: name one" : "the seed has no such client",
                at: "/client_id")
        }
        return found
    }

    /// A user who is not deleted. Throws `Problem` (422).
    func ordered(user id: String) throws -> AppleUser {
        guard let user = users.first(where: { $0.id == id }) else {
            throw Problem.invalid("this user does not exist or was deleted", at: "/user")
        }
        return user
    }
}

enum OrderWord {
    /// One of the defined words; nil for nil. Throws `Problem` (422).
    static func read<Word: RawRepresentable & CaseIterable>(
        _ text: String?, _ pointer: String
    ) throws -> Word? where Word.RawValue == String {
        guard let text else { return nil }
        guard let word = Word(rawValue: text) else {
            throw Problem.invalid(
                "must be one of \(Word.allCases.map(\.rawValue).joined(separator: ", "))",
                at: pointer)
        }
        return word
    }
}
