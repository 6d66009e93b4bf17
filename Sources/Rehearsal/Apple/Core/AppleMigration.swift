// /auth/usermigrationinfo: users who move to another team with their app.

import MailCrypto
import Support

extension AppleState {
    /// Moves the app to another team; its users must be matched by `transfer_sub`.
    /// - Returns: false if the team does not exist, or if the app already belongs to it.
    package mutating func transfer(_ client: AppleClient, to team: String, now: Int64) -> Bool {
        guard let from = self.team(of: client), let to = seed.team(team), from.id != to.id else {
            return false
        }
        transfers[client.id] = AppleTransfer(from: from.id, to: to.id, at: now)
        // Hidden addresses are specific to a team.
        for (name, consent) in consents
        where name.clientID == client.id && consent.isPrivate && consent.email != nil {
            consents[name]?.email = Self.privateEmail(name.userID, team: to.id)
        }
        return true
    }

    /// Always the same for each user and pair of teams.
    static func transferSubject(_ userID: String, from: String, to: String) -> String {
        subject("\(userID) to \(to)", team: from)
    }

    /// Answers /auth/usermigrationinfo, for the old and for the new team. Throws `AppleRefusal`.
    /// - Parameter authorization: the Authorization field.
    /// - Returns: the response, and the action.
    package mutating func migrationInfo(
        _ form: AppleParameters, authorization: String?, now: Int64
    ) throws(AppleRefusal) -> (body: JSONObject, done: String) {
        let caller = try caller(form, hasAuthorization: false, now: now)
        let isTaking = form["transfer_sub"] != nil
        // The new team need not send an access token.
        if !isTaking || authorization != nil { try checkAccess(authorization, caller, now: now) }
        if isTaking { return try taken(form, caller, now: now) }
        try form.require(only: ["client_id", "client_secret", "sub", "target"])
        let (sub, target) = (try form.required("sub"), try form.required("target"))
        guard let to = seed.team(target), to.id != caller.team.id else {
            throw AppleRefusal(
                .invalidRequest,
                "target \(target.withoutControls(limit: 80)) is not another team of the seed")
        }
        guard
            let user = seed.users.first(where: { Self.subject($0.id, team: caller.team.id) == sub })
        else {
            throw AppleRefusal(
                .invalidRequest,
                "sub \(sub.withoutControls(limit: 80)) is not a user of team \(caller.team.id)")
        }
        let transferSub = Self.transferSubject(user.id, from: caller.team.id, to: to.id)
        transferSubjects[transferSub] = AppleTransferSubject(
            userID: user.id, from: caller.team.id, to: to.id)
        return (["transfer_sub": .string(transferSub)], "\(user.id) can go to team \(to.id)")
    }

    private func checkAccess(
        _ authorization: String?, _ caller: AppleCaller, now: Int64
    ) throws(AppleRefusal) {
        guard let authorization, authorization.lowercased().hasPrefix("bearer ") else {
            throw AppleRefusal(
                .invalidRequest, "the request has no Authorization: Bearer ACCESS_TOKEN")
        }
        guard let grant = accessTokens[String(authorization.dropFirst(7))], grant.userID == nil
        else {
            throw AppleRefusal(
                .invalidRequest,
                "the access token is not one of client_credentials with scope user.migration")
        }
        guard grant.clientID == caller.client.id else {
            throw AppleRefusal(
                .invalidRequest,
                "the access token was issued to \(grant.clientID), not to \(caller.client.id)")
        }
        if let expiry = grant.expiresAt, expiry <= now {
            throw AppleRefusal(
                .invalidRequest, "the access token expired \(span(now - expiry)) ago")
        }
    }

    private func taken(
        _ form: AppleParameters, _ caller: AppleCaller, now: Int64
    ) throws(AppleRefusal) -> (body: JSONObject, done: String) {
        try form.require(only: ["client_id", "client_secret", "transfer_sub"])
        let team = caller.team.id
        guard let subject = transferSubjects[try form.required("transfer_sub")], subject.to == team
        else {
            throw AppleRefusal(.invalidRequest, "the transfer_sub was not made for team \(team)")
        }
        guard let transfer = transfers[caller.client.id], transfer.to == team,
            transfer.from == subject.from
        else {
            throw AppleRefusal(
                .invalidRequest,
                "\(caller.client.id) was not transferred from \(subject.from) to \(team)")
        }
        guard now < transfer.at + Self.transferWindow else {
            throw AppleRefusal(
                .invalidRequest,
                "the 60 days after the transfer ended \(span(now - transfer.at - Self.transferWindow)) ago"
            )
        }
        guard let user = seed.user(subject.userID) else {
            throw AppleRefusal(.invalidRequest, "this user was deleted")
        }
        var body: JSONObject = ["sub": .string(Self.subject(user.id, team: team))]
        if let consent = consents[ClientUser(clientID: caller.client.id, userID: user.id)],
            let email = consent.email
        {
            body["email"] = .string(email)
            if consent.isPrivate { body["is_private_email"] = flag(true) }
        }
        return (body, "\(user.id) came from team \(subject.from)")
    }
}
