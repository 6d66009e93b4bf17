// /ssf: receivers create and change their streams (OpenID Shared Signals Framework 1.0 sections 7
// and 8).

import Accounts
import Database
import Events
import HTTP
import HTTPTypes
import Hummingbird
import SharedSignals
import SignIn
import Support

package struct StreamRoutes: RouteModule {
    /// The most octets in a body: a stream configuration with 128 URIs.
    private static let bodyLimit = 131_072

    let parts: RouteParts
    let signer: IdentitySigner
    let rules: StreamRepository.Rules
    let waiting = PollWaiting()

    package init(_ parts: RouteParts, signer: IdentitySigner, rules: StreamRepository.Rules) {
        (self.parts, self.signer, self.rules) = (parts, signer, rules)
    }

    package func addRoutes(to routes: Routes) {
        // The issuer's path, if it has one, follows (section 7.2.1).
        let issuerPath = rules.issuer.split(separator: "/", omittingEmptySubsequences: false)
            .dropFirst(3)
        let path = ([TransmitterMetadata.path] + issuerPath.filter { !$0.isEmpty }.map(String.init))
            .joined(separator: "/")
        routes.open.get(RouterPath(path), use: metadata)
        let manage = routes.app(.streamsManage, bodyLimit: Self.bodyLimit, tokens: holder)
        manage.post("/ssf/stream", use: create).patch("/ssf/stream", use: update).put(
            "/ssf/stream", use: replace
        )
        .delete("/ssf/stream", use: remove)
        manage.post("/ssf/status", use: setStatus)
        manage.post("/ssf/subjects/add", use: addSubject).post(
            "/ssf/subjects/remove", use: removeSubject)
        manage.post("/ssf/verification", use: verify)
        let read = routes.app(.streamsRead, bodyLimit: Self.bodyLimit, tokens: holder)
        read.get("/ssf/stream", use: show).get("/ssf/status", use: status)
        read.post("/ssf/poll/{stream_id}", use: poll)
    }

    /// The holder of an access token that an app obtained for itself.
    @Sendable private func holder(_ token: String) async throws -> Principal? {
        let time = parts.now()
        guard let app = try await parts.run({ try $0.provider.app(accessToken: token, now: time) })
        else { return nil }
        let scopes = Set(app.scopes.map(Scope.init(rawValue:)))
        return Principal(keyID: app.clientID, scopes: scopes, team: app.team, group: app.group)
    }

    // MARK: Requests and responses

    static func owner(_ caller: TeamCaller) -> StreamRepository.Owner {
        StreamRepository.Owner(team: caller.id, group: caller.group)
    }

    /// The body, parsed by `read`. Throws `Problem`: every error is 400, as the framework requires.
    static func body<Value>(
        _ request: Request, _ context: TeamContext,
        _ read: (JSONObject) throws(SharedSignalsError) -> Value
    ) async throws -> Value {
        _ = try request.query([])
        let value = try JSONBody.parse(
            Array(try await request.collect(context, type: "application/json").readableBytesView))
        guard case .object(let object) = value else {
            throw Problem.malformed("the body is not an object")
        }
        do throws(SharedSignalsError) { return try read(object) } catch {
            throw Problem.malformed(error.description)
        }
    }

    /// Runs `body` on the store; input that the store finds invalid is 400.
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (Store) throws -> Value
    ) async throws -> Value {
        do { return try await parts.run(body) } catch let failure as StoreFailure {
            if case .refused(.invalid) = failure.code {
                throw Problem.malformed(failure.publicMessage)
            }
            throw failure
        }
    }

    private static func answer(_ object: JSONObject, status: HTTPResponse.Status = .ok) -> Response
    {
        .object(object, status: status, headers: HTTPFields().notStored)
    }

    /// `stream_id` of the query; nil if it is missing.
    private static func streamID(_ request: Request) throws -> String? {
        try request.query(["stream_id"])["stream_id"]?.text
    }

    private static func requiredStreamID(_ request: Request) throws -> String {
        guard let id = try streamID(request) else {
            throw Problem.malformed("stream_id is missing")
        }
        return id
    }

    // MARK: Routes

    private func metadata(_ request: Request, _ context: APIContext) async throws -> Response {
        // Caches may keep it for an hour, like the other discovery document.
        .object(
            TransmitterMetadata.document(issuer: rules.issuer),
            headers: [.cacheControl: "public, max-age=3600"])
    }

    private func create(_ request: Request, _ context: TeamContext) async throws -> Response {
        // The app of the stream, if a team with several apps uses its key.
        let (wanted, app) = try await Self.body(request, context) {
            json throws(SharedSignalsError) in
            guard json["aud"] == nil || json["aud"]?.string != nil else {
                throw SharedSignalsError("aud is not text")
            }
            return (try StreamRequest(json, isNew: true), json["aud"]?.string)
        }
        let (owner, change) = (Self.owner(context.caller), context.change(now: parts.now()))
        // The signing keys must be published before the first signature.
        _ = try await signer.key(.rs256)
        let stream = try await run { [rules] store in
            try store.streams.add(owner, app: app, wanted, rules, change)
        }
        return Self.answer(stream.configuration(issuer: rules.issuer), status: .created)
    }

    private func show(_ request: Request, _ context: TeamContext) async throws -> Response {
        let owner = Self.owner(context.caller)
        if let id = try Self.streamID(request) {
            return Self.answer(
                try await run { try $0.streams.stream(owner, id) }.configuration(
                    issuer: rules.issuer))
        }
        let all = try await run { try $0.streams.streams(owner) }
        let list = JSONValue.array(all.map { .object($0.configuration(issuer: rules.issuer)) })
        return Response(
            type: "application/json", headers: HTTPFields().notStored,
            body: ByteBuffer(bytes: list.octets))
    }

    private func update(_ request: Request, _ context: TeamContext) async throws -> Response {
        try await change(request, context, isReplacement: false)
    }

    private func replace(_ request: Request, _ context: TeamContext) async throws -> Response {
        try await change(request, context, isReplacement: true)
    }

    private func change(
        _ request: Request, _ context: TeamContext, isReplacement: Bool
    ) async throws -> Response {
        let wanted = try await Self.body(request, context) { json throws(SharedSignalsError) in
            try StreamRequest(json, isNew: false)
        }
        let (owner, change) = (Self.owner(context.caller), context.change(now: parts.now()))
        let stream = try await run { [rules] store in
            try store.streams.update(owner, wanted, isReplacement: isReplacement, rules, change)
        }
        return Self.answer(stream.configuration(issuer: rules.issuer))
    }

    private func remove(_ request: Request, _ context: TeamContext) async throws -> Response {
        let id = try Self.requiredStreamID(request)
        let (owner, change) = (Self.owner(context.caller), context.change(now: parts.now()))
        try await run { try $0.streams.remove(owner, id, change) }
        return .empty
    }

    private func status(_ request: Request, _ context: TeamContext) async throws -> Response {
        let (id, owner) = (try Self.requiredStreamID(request), Self.owner(context.caller))
        return Self.answer(try await run { try $0.streams.stream(owner, id) }.statusObject)
    }

    private func setStatus(_ request: Request, _ context: TeamContext) async throws -> Response {
        let wanted = try await Self.body(request, context, StatusRequest.init)
        let (owner, change) = (Self.owner(context.caller), context.change(now: parts.now()))
        return Self.answer(try await run { try $0.streams.set(owner, wanted, change) }.statusObject)
    }

    private func addSubject(_ request: Request, _ context: TeamContext) async throws -> Response {
        try await set(request, context, isIn: true)
        return Response(status: .ok, headers: [.contentLength: "0"])
    }

    private func removeSubject(_ request: Request, _ context: TeamContext) async throws -> Response
    {
        try await set(request, context, isIn: false)
        return .empty
    }

    private func set(_ request: Request, _ context: TeamContext, isIn: Bool) async throws {
        let wanted = try await Self.body(request, context, SubjectRequest.init)
        let (owner, change) = (Self.owner(context.caller), context.change(now: parts.now()))
        try await run { [rules] store in
            try store.streams.set(owner, wanted, isIn: isIn, issuer: rules.issuer, change)
        }
    }

    private func verify(_ request: Request, _ context: TeamContext) async throws -> Response {
        let wanted = try await Self.body(request, context, VerificationRequest.init)
        let (owner, change) = (Self.owner(context.caller), context.change(now: parts.now()))
        guard try await run({ try $0.streams.verify(owner, wanted, change) }) else {
            throw Problem.tooManyRequests(
                "verification events already wait for delivery", retryAfter: 60)
        }
        return .empty
    }
}
