// The data that accompanies a request from middleware to route.

import Foundation
import Hummingbird
import Logging
import NIOCore
import Synchronization

/// The caller, once known; also for the request's line in the log.
final class RequestNote: Sendable {
    private let stored = Mutex<Principal?>(nil)
    var principal: Principal? {
        get { stored.withLock { $0 } }
        set { stored.withLock { $0 = newValue } }
    }
}

/// One of this project's contexts: that of a request, or one made from it.
package protocol RouteContext: RequestContext {
    /// The original context of the request.
    var base: APIContext { get }
}

/// The request context of every route.
package struct APIContext: RouteContext {
    package var coreContext: CoreRequestContextStorage
    /// Part of the response, of every log line and of problems.
    package internal(set) var requestID = ""
    /// The log data of the request; shared by all copies of the context.
    let note = RequestNote()
    /// The most octets that are accepted in a body.
    package internal(set) var maxUploadSize = 65_536
    /// The client's address; nil if there is no connection, as in tests of the router.
    package let remoteAddress: SocketAddress?
    private let channel: any Channel

    package var base: APIContext { self }

    package init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        remoteAddress = source.channel.remoteAddress
        channel = source.channel
    }

    /// Lets a client that waits for permission (`Expect: 100-continue`) send its body.
    func askForBody(of request: Request) {
        guard remoteAddress != nil, request.headers[.expect] != nil else { return }
        channel.triggerUserOutboundEvent(ConnectionGuard.BodyWanted(), promise: nil)
    }
}

extension RequestContext {
    /// A part of the path, decoded. Throws `Problem` (404) if it is not text.
    package func pathParameter(_ name: String) throws -> String {
        guard let raw = parameters.get(name), let text = raw.removingPercentEncoding, !text.isEmpty
        else {
            throw Problem.notFound()
        }
        return text
    }
}
