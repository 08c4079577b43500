import { defineWords } from '../i18n/words'

export const words = defineWords({
  status: { zh: '状态', en: 'Status' },
  type: { zh: '类型', en: 'Type' },
  none: { zh: '无', en: 'None' },
  pods: { zh: 'Pod', en: 'Pods' },
  node: { zh: '节点', en: 'Node' },
  restarts: { zh: '重启次数', en: 'Restarts' },
  logs: { zh: '日志', en: 'Logs' },
  monitor: { zh: '资源监测', en: 'Resources' },
  terminal: { zh: '终端', en: 'Terminal' },
  enter: { zh: '进入', en: 'Enter' },
  noPods: { zh: '没有 Pod', en: 'There are no pods' },
  stopped: { zh: '没有正在运行的 Pod。', en: 'No pod runs.' },
  failed: { zh: '未能完成：{message}', en: 'It could not be done: {message}' },
  create: { zh: '创建', en: 'Create' },
  cloneOf: { zh: '内容来自 {name}，请检查后创建。', en: 'Filled in from {name}; look it over, then create it.' },
  cloneGone: { zh: '{name} 不存在，表单是空的：{message}', en: '{name} does not exist, so the form is empty: {message}' },
})
