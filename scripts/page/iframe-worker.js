// A page that is opened as a file may start no worker: the one of the search runs in a frame then.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.body.appendChild(document.createElement("iframe"))
      frame.hidden = true
      const inside = frame.contentWindow
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = inside.document.createElement("script")
      const loaded = new Promise(done => { script.onload = done })
      script.src = url
      inside.document.head.append(script)
      this.postMessage = data => loaded.then(() => inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
