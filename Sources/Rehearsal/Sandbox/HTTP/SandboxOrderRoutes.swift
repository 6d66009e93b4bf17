// /sandbox: orders and queries of a developer. Open, because the sandbox listens on loopback only;
// JSON, which pages of other sites cannot send without permission.

import Accounts
import Administration
import Database
import Decisions
import HTTP
import HTTPTypes
import Hummingbird
import InternetMessage
import MailAuth
import MailCrypto
import PosternSQLite
import Service
import SignIn
import Support

struct SandboxOrderRoutes: RouteModule {
    let desk: SandboxDesk
    let parts: ServiceParts
    let pool: BlockingPool

    private var store: Store { parts.store }
    private var change: Change { Change(actor: "sandbox", now: desk.clock.now) }

    func addRoutes(to routes: Routes) {
        routes.open.post("/sandbox/token", use: token).post("/sandbox/clock", use: setClock).get(
            "/sandbox/clock", use: clock
        )
        .post("/sandbox/failures", use: order).delete("/sandbox/failures", use: cancel)
        .post("/sandbox/users", use: setUser).get("/sandbox/users", use: users).delete(
            "/sandbox/users/{user}", use: removeUser
        )
        .post("/sandbox/dns", use: setRecord).get("/sandbox/requests", use: requests).post(
            "/sandbox/reset", use: reset)
    }

    // MARK: Tokens

    private struct TokenOrder: Decodable {
        let user: String?
        let sub: String?
        let clientId: String?
        let nonce: String?
        let realUserStatus: Int?
        let nonceSupported: Bool?
        let email: String?
        let lifetime: Int?
        let age: Int?
    }

    private struct TokenView: Encodable {
        let identityToken: String
        let nonce: String?
        let sub: String
    }

    private func token(_ request: Request, _ context: APIContext) async throws -> Response {
        let wanted = try await request.decode(TokenOrder.self, context)
        // A nonce is made unless the request has an empty text for none.
        let made = try wanted.nonce ?? Base32.characters(fromRandom: SecureRandom.bytes(count: 16))
        let nonce = made.isEmpty ? nil : made
        if let user = wanted.user {
            guard wanted.sub == nil, wanted.realUserStatus == nil, wanted.nonceSupported == nil,
                wanted.email == nil,
                wanted.lifetime == nil, wanted.age == nil
            else {
                throw Problem.invalid(
                    "user goes with client_id and nonce only: such a token is the provider's own",
                    at: "/user")
            }
            return try await signIn(user, wanted.clientId ?? desk.facts.clientID, nonce)
        }
        let sub =
            try wanted.sub ?? "user-" + Base32.characters(fromRandom: SecureRandom.bytes(count: 8))
        guard (1...255).contains(sub.utf8.count) else {
            throw Problem.invalid("must be 1 to 255 octets", at: "/sub")
        }
        let (lifetime, age) = (wanted.lifetime ?? 600, wanted.age ?? 0)
        guard (-86_400...864_000).contains(lifetime), (-86_400...864_000).contains(age) else {
            throw Problem.invalid("lifetime and age must be at most ten days, in seconds")
        }
        let now = desk.clock.now
        let token = try desk.issuer.mint(
            SandboxToken(
                subject: sub, audience: wanted.clientId ?? desk.facts.clientID, nonceClaim: nonce,
                realUserStatus: wanted.realUserStatus.map(Int64.init),
                nonceSupported: wanted.nonceSupported,
                email: wanted.email, lifetime: Int64(lifetime), issuedAt: now - Int64(age)),
            now: now)
        return try .json(TokenView(identityToken: token, nonce: nonce, sub: sub))
    }

    /// Signs in a user of the installation, as with a code: the app gets the provider's own token.
    private func signIn(
        _ user: String, _ clientID: String, _ nonce: String?
    ) async throws -> Response {
        let now = desk.clock.now
        let (algorithm, redirect) = try await pool.run { [store] in
            (
                try store.clients.client(clientID)?.identityTokenAlgorithm
                    ?? SignatureAlgorithm.es256.rawValue,
                try store.openIDClients.authorizationClient(clientID)?.redirectURIs.first ?? ""
            )
        }
        let maker = try await parts.identitySigner.maker(
            issuer: desk.facts.url, algorithm, now: now)
        var authorization = ProviderAuthorization(
            grant: AuthorizationRequest(clientID: clientID, userID: user), redirectURI: redirect,
            scopes: [UserScope.openid, UserScope.email], nonce: nonce, challenge: nil, orgID: nil,
            authenticatedAt: now)
        authorization.method = AuthenticationMethod(references: ["otp"])
        authorization.signIn = .mail
        let (ready, change) = (authorization, change)
        let view = try await pool.run { [store, statuses = parts.statuses] in
            try store.provider.authorize(ready, statuses: statuses, change) {
                issued throws(StoreFailure) in
                TokenView(
                    identityToken: try maker.token(issued.subject), nonce: nonce,
                    sub: issued.subject.sub)
            }
        }
        return try .json(view)
    }

    // MARK: Clock and failures

    private struct ClockOrder: Decodable {
        let advance: Int64?
        let offset: Int64?
    }
    private struct ClockView: Encodable {
        let now: Timestamp
        let offset: Int64
    }

    private func setClock(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(ClockOrder.self, context)
        guard (order.advance == nil) != (order.offset == nil) else {
            throw Problem.invalid("send either advance or offset, in seconds")
        }
        guard
            order.advance.map(desk.clock.advance) ?? order.offset.map(desk.clock.set(offset:))
                ?? false
        else {
            throw Problem.invalid(
                "the clock only goes forward, by at most ten years in total",
                at: order.advance == nil ? "/offset" : "/advance")
        }
        return try .json(ClockView(now: Timestamp(desk.clock.now), offset: desk.clock.offset))
    }

    private func clock(_ request: Request, _ context: APIContext) async throws -> Response {
        try .json(ClockView(now: Timestamp(desk.clock.now), offset: desk.clock.offset))
    }

    private struct FailureOrder: Decodable {
        let on: String
        let failure: String
        let times: Int?
        let seconds: Int?
    }

    private func order(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(FailureOrder.self, context)
        guard let part: SandboxPart = try OrderWord.read(order.on, "/on"),
            let failure: SandboxFailure = try OrderWord.read(order.failure, "/failure")
        else { return .empty }
        let (times, seconds) = (order.times ?? 1, order.seconds ?? 30)
        guard (1...SandboxFailures.maximumTimes).contains(times) else {
            throw Problem.invalid("must be 1 to \(SandboxFailures.maximumTimes)", at: "/times")
        }
        guard (1...SandboxFailures.maximumSeconds).contains(seconds) else {
            throw Problem.invalid("must be 1 to \(SandboxFailures.maximumSeconds)", at: "/seconds")
        }
        guard failure.suits(part) else {
            throw Problem.invalid(
                "\(failure.rawValue) cannot happen at \(part.rawValue)", at: "/failure")
        }
        guard desk.failures.add(failure, at: part, times: times, seconds: seconds) else {
            throw Problem.conflict(
                "\(SandboxFailures.maximum) failures wait already: DELETE /sandbox/failures removes them"
            )
        }
        return .empty
    }

    private func cancel(_ request: Request, _ context: APIContext) async throws -> Response {
        desk.failures.removeAll()
        return .empty
    }

    // MARK: Users

    private struct UserOrder: Decodable {
        let user: String
        let name: String?
        let inbox: String?
        let verified: Bool?
        let realUserStatus: Int?
        let usesApp: Bool?
        let forwarding: Bool?
    }

    struct UserView: Encodable {
        struct InboxView: Encodable {
            let address: String
            let verified: Bool
        }
        let user: String
        let inboxes: [InboxView]
        let sub: String?
        let address: String?
        let forwarding: Bool?

        init(_ user: User, _ store: Store) throws {
            self.user = user.id
            inboxes = try store.inboxes.inboxes(user: user.id).map {
                InboxView(address: $0.address.revealed.wireForm, verified: $0.isVerified)
            }
            let found = try store.addresses.addresses(team: SandboxNames.team, user: user.id).first(
                where: \.isCurrent)
            (sub, address) = (found?.account.sub, found?.address.wireForm)
            forwarding = found.map { $0.isForwardingOn && $0.retiredAt == nil }
        }
    }

    private struct UserList: Encodable { let items: [UserView] }

    /// Adds a user, or changes an existing one.
    private func setUser(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(UserOrder.self, context)
        guard !order.user.utf8.isEmpty else {
            throw Problem.invalid("must be the name of a user", at: "/user")
        }
        if let status = order.realUserStatus, !(0...2).contains(status) {
            throw Problem.invalid("must be 0, 1 or 2", at: "/real_user_status")
        }
        let (change, zone, clientID) = (change, desk.zone, desk.facts.clientID)
        let view = try await pool.run { [store] in
            let known = try? store.users.user(order.user)
            let inbox = try (order.inbox ?? (known == nil ? "\(order.user)@home.example" : nil)).map
            {
                InboxAddress(try AddrSpec.typed($0))
            }
            if let inbox { zone.open(inbox.revealed.domain) }
            if known == nil, let inbox {
                _ = try store.users.add(
                    id: order.user, name: order.name, inbox: inbox,
                    isVerified: order.verified ?? true, change)
            } else if let inbox {
                if try !store.inboxes.inboxes(user: order.user).contains(where: {
                    $0.address == inbox
                }) {
                    _ = try store.inboxes.add(
                        user: order.user, inbox, isVerified: order.verified ?? true,
                        isReplyOnly: false, change)
                } else if order.verified == true {
                    _ = try store.inboxes.confirm(user: order.user, .address(inbox), change)
                }
            }
            if order.usesApp == true || order.forwarding != nil {
                let issued = try store.addresses.issue(
                    team: SandboxNames.team, user: order.user, app: clientID, change)
                if let forwarding = order.forwarding {
                    try store.addresses.setForwarding(
                        issued.address.address, on: forwarding, change)
                }
            }
            return try UserView(store.users.user(order.user), store)
        }
        if let status = order.realUserStatus { desk.statuses.set(status, of: order.user) }
        return try .json(view)
    }

    private func users(_ request: Request, _ context: APIContext) async throws -> Response {
        try await .json(
            pool.run { [store] in
                UserList(items: try store.users.all(limit: 1_000).map { try UserView($0, store) })
            })
    }

    private func removeUser(_ request: Request, _ context: APIContext) async throws -> Response {
        let (user, change) = (try context.pathParameter("user"), change)
        try await pool.run { [store] in try store.users.remove(user, change) }
        return .empty
    }

    // MARK: DNS

    private struct RecordOrder: Decodable {
        let name: String
        let type: String?
        let value: String?
        let failure: String?
    }

    private func setRecord(_ request: Request, _ context: APIContext) async throws -> Response {
        let order = try await request.decode(RecordOrder.self, context)
        guard (1...253).contains(order.name.utf8.count),
            order.name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            throw Problem.invalid("must be a name in ASCII, without a dot at its end", at: "/name")
        }
        let failure: ZoneResolver.Failure? = try OrderWord.read(order.failure, "/failure")
        let type: DNSRecordType? = try OrderWord.read(order.type, "/type")
        var hasRoom = true
        switch (failure, type, order.value) {
        case (let failure?, nil, nil): hasRoom = desk.zone.fail(failure, at: order.name)
        case (nil, .txt?, let value?):
            hasRoom = desk.zone.add(.txt(Array(value.utf8)), .txt, to: order.name)
        case (nil, let type?, let value?):
            guard type == .a || type == .aaaa else {
                throw Problem.invalid(
                    "records of this type cannot be added: TXT, A or AAAA", at: "/type")
            }
            guard let address = IPAddress(value) else {
                throw Problem.invalid("must be an IP address", at: "/value")
            }
            hasRoom = desk.zone.add(.address(address.octets), type, to: order.name)
        case (nil, let type, nil): desk.zone.remove(type, of: order.name)
        default:
            throw Problem.invalid(
                "a type with a value adds a record; without a value its records are removed; or failure alone"
            )
        }
        guard hasRoom else {
            throw Problem.conflict("\(SandboxZone.most) names have records already")
        }
        return .empty
    }

    // MARK: Journal, reset

    private struct RequestView: Encodable {
        let number: Int
        let at: Timestamp
        let method: String
        let path: String
        let status: Int
        let error: String?
        let cause: String?
    }
    private struct RequestList: Encodable { let items: [RequestView] }

    private func requests(_ request: Request, _ context: APIContext) async throws -> Response {
        try .json(
            RequestList(
                items: desk.journal.entries.map {
                    RequestView(
                        number: $0.number, at: Timestamp($0.at), method: $0.method, path: $0.path,
                        status: $0.status,
                        error: $0.error, cause: $0.cause)
                }))
    }

    private func reset(_ request: Request, _ context: APIContext) async throws -> Response {
        let desk = desk
        try await pool.run { [store] in
            guard let database = store.database.first as? SQLiteDatabase else { return }
            try StoreRewind.run(database, to: desk.copy)
            desk.clear()
        }
        return .empty
    }
}
