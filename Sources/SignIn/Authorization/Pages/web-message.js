(() => {
  const {origin, response} = document.documentElement.dataset
  if (window.opener === null) return
  window.opener.postMessage({type: "authorization_response", response: JSON.parse(response)}, origin)
  window.close()
})()
