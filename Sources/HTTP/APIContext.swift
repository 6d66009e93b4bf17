// What goes with a request from middleware to route.

import Foundation
import Hummingbird
import Logging
import NIOCore
import Synchronization

/// Who asks, learned on the way; also for the request's line in the log.
final class RequestNote: Sendable {
    private let stored = Mutex<Principal?>(nil)
    var principal: Principal? {
        get { stored.withLock { $0 } }
        set { stored.withLock { $0 = newValue } }
    }
}

/// A context of ours: that of every request, or one made from it.
package protocol RouteContext: RequestContext {
    /// The context with which the request came in.
    var base: APIContext { get }
}

/// The request context of every route.
package struct APIContext: RouteContext {
    package var coreContext: CoreRequestContextStorage
    /// Stands in the answer, in every log line and in problems.
    package internal(set) var requestID = ""
    /// What is logged about the request; shared by all copies of the context.
    let note = RequestNote()
    /// Octets of a body that are taken.
    package internal(set) var maxUploadSize = 65_536
    /// Of the client; nil where there is no connection, as in tests of the router.
    package let remoteAddress: SocketAddress?
    private let channel: any Channel

    package var base: APIContext { self }

    package init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        remoteAddress = source.channel.remoteAddress
        channel = source.channel
    }

    /// Lets a client that waits for word (`Expect: 100-continue`) send its body.
    func askForBody(of request: Request) {
        guard remoteAddress != nil, request.headers[.expect] != nil else { return }
        channel.triggerUserOutboundEvent(ConnectionGuard.BodyWanted(), promise: nil)
    }
}

extension RequestContext {
    /// A part of the path, decoded. Throws `Problem` (404) where it is not text.
    package func pathParameter(_ name: String) throws -> String {
        guard let raw = parameters.get(name), let text = raw.removingPercentEncoding, !text.isEmpty else {
            throw Problem.notFound()
        }
        return text
    }
}
